"""Tempest's workspaces for the rack: a folder each, with tempest.conf and .stestr.conf."""

import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pondstack_rack import config
from pondstack_rack.layout import Layout, RackError, program
from pondstack_rack.services import image

FLAVORS = {
    "plain": {"tempest.small": (256, 0), "tempest.alt": (320, 0)},
    "pool": {"tempest.pool.small": (1280, 1024), "tempest.pool.alt": (1344, 1024)},
}
"""Flavors of the tests that bring none of their own: name, RAM and pool memory of it in MiB; one vCPU each."""

FAKE_IMAGE = "blank-fake"
"""Goes to the fake computes and nowhere else: disks cannot be copied between the libvirt hosts of one machine."""

OURS = r"^pondstack_tempest\."


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of Tempest: its tests, by regular expressions, one in each line, and where their servers go."""

    name: str
    tests: str
    libvirt: bool
    """Servers that do not say where go to the libvirt hosts, else to the fake computes."""

    networks: bool = False
    """Tenants have networks and servers have ports, which nothing wires."""

    @property
    def stock(self) -> bool:
        """Whether its tests are Tempest's own."""
        return self.tests != OURS


def passes(layout: Layout) -> tuple[Pass, ...]:
    """Return what this rack can run: our plugin, then stock tests on each kind of hosts that it has."""
    found = [Pass("pondstack", OURS, libvirt=not layout.fake_hosts)]
    if layout.libvirt_hosts:
        found.append(Pass("stock-libvirt", config.template("tempest-libvirt.txt"), libvirt=True))
    if layout.fake_hosts:
        found.append(Pass("stock-fake", config.template("tempest-fake.txt"), libvirt=False, networks=True))
    return tuple(found)


def workspace(layout: Layout, connection: Any, one: Pass, flavors: str = "plain") -> Path:
    """Write the workspace of a pass, and make the image and the flavors that it names; return its folder."""
    folder = layout.root / "tempest" / one.name
    (folder / "lock").mkdir(parents=True, exist_ok=True)
    config.write(
        folder / "tempest.conf", config.render("tempest.conf", _values(layout, connection, one, folder, flavors))
    )
    config.write(folder / ".stestr.conf", _stestr())
    return folder


def _values(layout: Layout, connection: Any, one: Pass, folder: Path, flavors: str) -> dict[str, object]:
    guest = _image(connection, image.IMAGE) if layout.libvirt_hosts else ""
    hosts = layout.libvirt_hosts if one.libvirt else layout.fake_hosts
    used = guest if one.libvirt else _fake_image(layout, connection)
    small, alt = (_flavor(connection, name, *sizes) for name, sizes in FLAVORS[flavors].items())
    return {
        "root": layout.root,
        "directory": folder,
        "log_dir": layout.log,
        "password": layout.password,
        "url_keystone": layout.url("keystone"),
        "authority": f"ca_certificates_file = {layout.authority}\n" if layout.authority else "",
        "image": used,
        "image_alt": _image(connection, image.BLANK),
        "flavor": small,
        "flavor_alt": alt,
        "computes": len(hosts),
        "hypervisor_type": "QEMU" if one.libvirt else "fake",
        "moves": str(not one.libvirt and len(hosts) > 1).lower(),
        "console": str(one.libvirt).lower(),
        "networks": str(one.networks).lower(),
        "znuma": str(bool(layout.libvirt_hosts)).lower(),
        "mitigation": str(len(layout.libvirt_hosts) > 1).lower(),
        "guest_image": guest,
        "service_command": shlex.join([program("python"), "-m", "pondstack_rack", *_directory(layout), "service"]),
        "expendable_hosts": ",".join(layout.fake_hosts),
        "lending_host": layout.fake_hosts[0] if layout.fake_hosts else "",
    }


def _directory(layout: Layout) -> tuple[str, str]:
    return ("--directory", str(layout.root))


def _stestr() -> str:
    spec = find_spec("tempest")
    if spec is None or spec.origin is None:
        raise RackError("tempest is not installed: run tools/setup.sh")
    top = Path(spec.origin).parent
    # The tests of a class run in one worker: they share what it has made.
    return f"[DEFAULT]\ntest_path={top / 'test_discover'}\ntop_dir={top.parent}\ngroup_regex=([^\\.]*\\.)*\n"


def _image(connection: Any, name: str) -> str:
    return str(connection.image.find_image(name, ignore_missing=False).id)


def _fake_image(layout: Layout, connection: Any) -> str:
    found = connection.image.find_image(FAKE_IMAGE)
    if found is None:
        found = connection.image.create_image(
            FAKE_IMAGE,
            filename=str(layout.root / "image" / "disk"),
            disk_format="raw",
            container_format="bare",
            visibility="public",
            wait=True,
            disable_vendor_agent=True,
            img_hv_type="fake",
        )
    return str(found.id)


def _flavor(connection: Any, name: str, ram_mib: int, pool_mib: int) -> str:
    found = connection.compute.find_flavor(name)
    if found is None:
        found = connection.compute.create_flavor(name=name, ram=ram_mib, vcpus=1, disk=1, flavorid=name)
        if pool_mib:
            specs = {"pond:policy": "fixed", "pond:pool_mb": str(pool_mib)}
            connection.compute.create_flavor_extra_specs(found, specs)
    return str(found.id)
