"""A rack of its own: a second `up` checks, a later one mends, `down` leaves nothing, and the system stays as it was.

By night: by day the rack of the other tests here goes up and down, too.
"""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pondstack_rack import cli, ports
from pondstack_rack.layout import PORTS, RackError, Sizes
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone, libvirt
from pondstack_rack.services.image import IMAGE
from pondstack_rack.wait import wait_until

pytestmark = [pytest.mark.rack, pytest.mark.night, pytest.mark.timeout(900)]

BOOT_SECONDS = 180.0


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="rack-", dir="/tmp"))
    yield path
    if (path / "rack.json").exists():
        Rack.open(path).down()
    shutil.rmtree(path, ignore_errors=True)


def test_the_life_of_a_rack(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = _system()
    base = ports.free_base(PORTS, first=26000)
    rack = Rack(folder, Sizes(hosts=1, fakes=0, slices=2, port_base=base))

    with socket.create_server(("127.0.0.1", rack.layout.port("glance"))):
        with pytest.raises(RackError, match=r"wanted for glance, is taken by pid \d+"):
            rack.up()
    assert rack.up() is True
    assert _system() == system, "the rack changed the machine's own mounts or /run"

    assert rack.up() is False
    assert cli.main(["--directory", str(folder), "status"]) == 0
    for name in ("nova-scheduler", "pondstack-agent-host1", "keystone"):
        rack.service(name).kill()
    assert cli.main(["--directory", str(folder), "status"]) == 1
    assert rack.up() is True
    assert all(service.running for service in rack.services.values())

    _boot(rack)
    assert len(libvirt.guests(rack.layout, "host1")) == 1
    assert cli.main(["--directory", str(folder), "down"]) == 0
    assert not folder.exists()
    assert wait_until(lambda: _processes(folder) == [], 60.0), _processes(folder)
    assert _system() == system
    ports.check_free({str(port): port for port in range(base, base + PORTS)})

    capsys.readouterr()
    assert cli.main(["--directory", str(folder), "down"]) == 0
    assert "nothing to do" in capsys.readouterr().out


def _boot(rack: Rack) -> None:
    tenant = rack.connection(keystone.TENANT)
    guest = tenant.image.find_image(IMAGE)
    flavor = tenant.compute.find_flavor("pond.fixed.small")
    server = tenant.compute.create_server(name="alive", flavor_id=flavor.id, image_id=guest.id, networks="none")

    def built() -> bool:
        return tenant.compute.get_server(server).status in ("ACTIVE", "ERROR")

    assert wait_until(built, BOOT_SECONDS, 0.5)
    assert tenant.compute.get_server(server).status == "ACTIVE", tenant.compute.get_server(server).fault


def _system() -> dict[str, object]:
    """What a rack must leave as it is; its own pool is the one mount that it makes.

    Without what tests/robustness makes meanwhile, in another worker: a disk over a loop device, network namespaces.
    """
    mounts = [line.split()[:3] for line in Path("/proc/mounts").read_text().splitlines()]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return {
        "mounts": [
            [device, place, kind]
            for device, place, kind in mounts
            if device != "pondstack-pool" and not place.startswith("/run/netns")
            if not device.startswith("/dev/loop") or place.startswith("/tmp/rack-")
        ],
        "run": sorted(path.name for path in Path("/run").iterdir() if path.name != "netns"),
        "libvirt": sorted(str(path) for path in Path("/etc/libvirt").rglob("*")),
        "hosts": Path("/etc/hosts").read_text(),
        "hostname": socket.gethostname(),
        "links": sorted(line.split(": ")[1] for line in links.splitlines() if "link-netns" not in line),
    }


def _processes(folder: Path) -> list[str]:
    """Return what still runs with the rack's folder among its arguments, working directory or open files."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if any(str(folder) in word for word in words):
                found.append(f"{process.pid}: {' '.join(words)[:120]}")
        except psutil.NoSuchProcess:
            continue
    return found
