"""How the demonstration's guest is: what it told last on its console, and the process that it is."""

from dataclasses import dataclass
from typing import Any

from pondstack_rack.demo import demo
from pondstack_rack.layout import RackError
from pondstack_rack.rack import Rack
from pondstack_rack.services import image, keystone, libvirt
from pondstack_rack.wait import wait_until

BEAT_SECONDS = 60.0
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Beat:
    """A beat of the guest: its number, how often it read something else from pool memory than it had written."""

    server: str
    pid: int
    count: int
    errors: int
    pool_node: int

    def __str__(self) -> str:
        return f"guest {demo.NAME} (pid {self.pid}): beat {self.count}, {self.errors} errors on node{self.pool_node}"


def read(rack: Rack) -> Beat | None:
    """Return the guest's last beat; None when there is no such guest. RackError when it runs and tells nothing."""
    tenant = rack.connection(keystone.TENANT)
    server = next(iter(tenant.compute.servers(name=f"^{demo.NAME}$")), None)
    if server is None or server.status != "ACTIVE":
        return None
    return _of_server(rack, tenant, server.id)


def later(rack: Rack, before: Beat) -> Beat:
    """Return a beat that began after `before`, or the last one when the guest beats no more."""
    tenant = rack.connection(keystone.TENANT)
    beat = before

    def went_on() -> bool:
        nonlocal beat
        beat = _of_server(rack, tenant, before.server)
        return beat.count > before.count + 1

    wait_until(went_on, BEAT_SECONDS, POLL_SECONDS)
    return beat


def compare(before: Beat, after: Beat) -> list[str]:
    """Return what happened to the guest in between; nothing when it did not notice."""
    wrong = []
    if not after.pid or after.pid != before.pid:
        wrong.append(f"the guest is another process: {after.pid or 'none'}, was {before.pid or 'none'}")
    if after.count <= before.count:
        wrong.append(f"the guest beats no more, the last beat was {after.count}")
    if after.errors:
        wrong.append(f"the guest read {after.errors} times something else from node{after.pool_node} than it wrote")
    return wrong


def _of_server(rack: Rack, tenant: Any, server: str) -> Beat:
    beats: list[dict[str, Any]] = []

    def told() -> bool:
        text = tenant.compute.get_server_console_output(server)["output"] or ""
        beats[:] = image.console_lines(text, "beat")
        return bool(beats)

    if not wait_until(told, BEAT_SECONDS, POLL_SECONDS):
        raise RackError(f"guest {server} tells nothing on its console")
    last = beats[-1]
    return Beat(server, _pid(rack, server), last["count"], last["errors"], last["pool_node"])


def _pid(rack: Rack, server: str) -> int:
    """Return the guest's process; 0 when it has none."""
    for host in rack.layout.libvirt_hosts:
        for process in libvirt.guests(rack.layout, host):
            if any(server in word for word in process.cmdline()):
                return int(process.pid)
    return 0
