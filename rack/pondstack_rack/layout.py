"""Where everything of a rack lies: one folder, one range of loopback ports, one record of its sizes."""

import json
import os
import secrets
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from pondstack_rack.servers import UNIX_SOCKET_MAX_BYTES, Certificate

RECORD = "rack.json"
LONGEST_SOCKET = f"hosts/host9/data-plane/{36 * 'x'}.sock"
"""Of a guest's swap disk, named by a UUID."""
HIDDEN_IN_HOSTS = ("/run", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/etc/libvirt")
"""Each libvirt host has its own of these; a rack below one of them would not see itself."""


class RackError(RuntimeError):
    """The rack cannot be built or torn down; the text says what to do next."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the caller chooses. `slices` are GiB of the pool device; `port_base` is the first of PORTS ports.

    Without any host the rack is a control plane, and its hosts come from elsewhere. With `tls` its database, broker and
    APIs take connections with TLS only.
    """

    hosts: int = 2
    fakes: int = 4
    slices: int = 16
    port_base: int = 21000
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The rack's folder, its sizes and its secret."""

    root: Path
    sizes: Sizes
    password: str

    @classmethod
    def make(cls, root: Path, sizes: Sizes) -> Self:
        """Create the folder, or open the one of an earlier run; RackError when it is unusable or of other sizes."""
        root = Path(root).resolve()
        _check_path(root)
        _check_sizes(sizes)
        record = root / RECORD
        if record.exists():
            layout = cls.load(root)
            if layout.sizes != sizes:
                raise RackError(f"{root} holds a rack of {layout.sizes}, not {sizes}: make rack-down first")
            return layout
        if root.exists() and any(root.iterdir()):
            raise RackError(f"{root} exists and is not a rack's folder: choose another RACK_DIR")
        layout = cls(root, sizes, secrets.token_hex(12))
        for path in (root, layout.etc, layout.log, layout.done, layout.bin):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        record.touch(mode=0o600)
        record.write_text(json.dumps({"sizes": asdict(sizes), "password": layout.password}))
        return layout

    @classmethod
    def load(cls, root: Path) -> Self:
        """Open the rack that a folder holds; RackError when there is none."""
        root = Path(root).resolve()
        try:
            record = json.loads((root / RECORD).read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise RackError(f"no rack in {root}: make rack") from None
        return cls(root, Sizes(**record["sizes"]), record["password"])

    @property
    def etc(self) -> Path:
        """Configuration files."""
        return self.root / "etc"

    @property
    def credentials(self) -> Path:
        """Credentials of pondstack's services, and the authority that vouches for them."""
        return self.etc / "credentials"

    @property
    def certificates(self) -> Path:
        """Certificates of the servers, of a rack with TLS."""
        return self.etc / "tls"

    def certificate(self, server: str) -> Certificate | None:
        """Return the certificate of one of TLS_SERVERS; None in a rack without TLS."""
        return Certificate.of(self.certificates, server) if self.sizes.tls else None

    @property
    def authority(self) -> Path | None:
        """The authority by which clients know the rack's servers; None in a rack without TLS."""
        found = self.certificate("api")
        return found.authority if found else None

    @property
    def log(self) -> Path:
        """Logs and pid files of all services."""
        return self.root / "log"

    @property
    def done(self) -> Path:
        """One empty file for each finished step, so that a second `up` continues."""
        return self.root / "done"

    @property
    def bin(self) -> Path:
        """Scripts of the rack: how to enter a host, the emulator."""
        return self.root / "bin"

    @property
    def pool(self) -> Path:
        """The tmpfs that stands for the pool devices' memory."""
        return self.root / "pool"

    @property
    def pool_device(self) -> Path:
        """The emulated pool device."""
        return self.pool / "pool0"

    @property
    def lenders(self) -> Path:
        """The sockets of the hosts that lend memory."""
        return self.root / "lenders"

    @property
    def traces(self) -> Path:
        """The file of the traces that fake computes play for their guests."""
        return self.root / "traces.json"

    @property
    def host_traces(self) -> Path:
        """The file of the loads that hosts play, which share one machine's CPUs."""
        return self.root / "host-traces.json"

    @property
    def sealing_keys(self) -> Path:
        """The file of the keys that seal what the controllers keep for lenders that sleep."""
        return self.etc / "sealing-keys"

    @property
    def libvirt_hosts(self) -> tuple[str, ...]:
        """Names of the hosts with a real libvirt."""
        return tuple(f"host{i}" for i in range(1, self.sizes.hosts + 1))

    @property
    def fake_hosts(self) -> tuple[str, ...]:
        """Names of the fake computes."""
        return tuple(f"fake{i}" for i in range(1, self.sizes.fakes + 1))

    @property
    def all_hosts(self) -> tuple[str, ...]:
        """Names of all computes."""
        return self.libvirt_hosts + self.fake_hosts

    def host(self, name: str) -> Path:
        """The folder of one compute host."""
        return self.root / "hosts" / name

    def port(self, name: str) -> int:
        """The port of a service."""
        return self.sizes.port_base + PORT_OFFSETS[name]

    def url(self, name: str) -> str:
        """The HTTP endpoint of a service."""
        return f"{'https' if self.sizes.tls else 'http'}://127.0.0.1:{self.port(name)}"

    def with_sizes(self, **changes: Any) -> Self:
        """A copy with other sizes (tests)."""
        return replace(self, sizes=replace(self.sizes, **changes))


PORT_OFFSETS = {
    "mariadb": 0,
    "rabbitmq": 1,
    "epmd": 2,
    "rabbitmq-dist": 3,
    "keystone": 5,
    "placement": 6,
    "glance": 7,
    "neutron": 8,
    "nova-api": 9,
    "pondstack-api": 10,
    "pondstack-controller1": 11,
    "pondstack-controller2": 12,
}
TLS_SERVERS = ("mariadb", "rabbitmq", "api")
"""Servers with a certificate each; "api" is that of all REST APIs."""
MIGRATION_OFFSET = 50
MIGRATION_PORTS = 10
"""Ports for live migrations to one host at the same time, twice: memory and disk."""
PORTS = 100
MAX_FAKES = 64
MAX_SLICES = 4096


MAX_HOSTS = (PORTS - MIGRATION_OFFSET) // MIGRATION_PORTS


def _check_sizes(sizes: Sizes) -> None:
    if not 0 <= sizes.hosts <= MAX_HOSTS:
        raise RackError(f"HOSTS={sizes.hosts}: choose 0 to {MAX_HOSTS} libvirt hosts")
    if not 0 <= sizes.fakes <= MAX_FAKES:
        raise RackError(f"FAKES={sizes.fakes}: choose 0 to {MAX_FAKES} fake computes")
    if not 1 <= sizes.slices <= MAX_SLICES:
        raise RackError(f"SLICES={sizes.slices}: choose 1 to {MAX_SLICES} slices")
    if not 1024 <= sizes.port_base <= 65535 - PORTS:
        raise RackError(f"RACK_PORT_BASE={sizes.port_base}: choose 1024 to {65535 - PORTS}")


def _check_path(root: Path) -> None:
    socket = os.fsencode(root / LONGEST_SOCKET)
    if len(socket) > UNIX_SOCKET_MAX_BYTES:
        room = UNIX_SOCKET_MAX_BYTES - len(LONGEST_SOCKET) - 1
        raise RackError(f"{root} is too long for unix sockets: choose a RACK_DIR of at most {room} characters")
    for hidden in HIDDEN_IN_HOSTS:
        if root.is_relative_to(hidden):
            raise RackError(
                f"{root} is below {hidden}, which each libvirt host has its own of: choose another RACK_DIR"
            )
    if any(character.isspace() or character in "%$'\"," for character in str(root)):
        raise RackError(f"{root} holds a blank, a quote, a comma, % or $: choose another RACK_DIR")


def program(name: str) -> str:
    """Return the path of a console script of this Python's venv."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise RackError(f"{path} is missing: run tools/setup.sh")
    return str(path)


def share(name: str) -> Path:
    """Return a file that a package installed below the venv's prefix, such as etc/nova/api-paste.ini."""
    return Path(sys.prefix) / name


def remove(root: Path) -> None:
    """Remove the folder; what is mounted below was unmounted before."""
    shutil.rmtree(root)
