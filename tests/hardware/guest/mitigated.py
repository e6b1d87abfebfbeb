"""The agent in a host, for mitigation: over the CXL driver and a controller that answers with the test's grant."""

import os
import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import futurist
import oslo_messaging
from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.wire import Attachment, DomainRewrite, Grant, Mitigation, Report
from pondstack_agent.build import build_agent
from pondstack_agent.drivers import HostPools
from pondstack_agent.drivers.cxl import CxlHostPool
from pondstack_agent.host import cpuset, numa
from pondstack_agent.mitigation import guest as guests
from pondstack_agent.mitigation.endpoint import MitigationEndpoint

STATE = Path("/var/lib/pondstack/agent")
HOLD_SECONDS = 240.0
EPOCH = 1


class Controller:
    """What the agent asks of it: the grants are the test's, and so is what becomes of releases."""

    def __init__(self) -> None:
        self.grants: dict[str, Grant] = {}
        self.released: list[str] = []

    def assign(self, _operation_id: str, request: AssignRequest) -> Grant:
        """Answer with the consumer's grant."""
        return self.grants[request.consumer_uuid]

    def acknowledge(self, **_request: Any) -> None:
        """The slices are online."""

    def release(self, *, allocation_uuid: str, **_request: Any) -> None:
        """Note that an allocation is offline."""
        self.released.append(allocation_uuid)

    def heartbeat(self, _report: Report) -> dict[str, Any]:
        """Answer as a controller that forgets nothing."""
        return {"epoch": EPOCH}


def _call(method: Callable[..., Any], **arguments: Any) -> Any:
    """Call an endpoint's method as the dispatcher does."""
    try:
        return method({}, **arguments)
    except oslo_messaging.ExpectedException as wrapped:
        raise wrapped.exc_info[1] from None


class Agent:
    """One agent at a time; `restart` is its next life, after a kill or not."""

    def __init__(self, host: str, serial: str, table: str, chunk_mib: int, headroom_mib: int = 64) -> None:
        self.controller = Controller()
        self._host, self._serial, self._table, self._chunk_mib = host, serial, table, chunk_mib
        self._kill_at, self._hold = "", False
        self._reached, self._go = threading.Event(), threading.Event()
        STATE.mkdir(parents=True, exist_ok=True)
        self.restart(headroom_mib)

    def restart(self, headroom_mib: int = 64) -> None:
        """Start the agent over what is on disk."""
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[])
        conf.set_override("host", self._host)
        for name, value in (
            ("state_dir", str(STATE)),
            ("mitigation_chunk_mib", self._chunk_mib),
            ("mitigation_headroom_mib", headroom_mib),
        ):
            conf.set_override(name, value, group="agent")
        tables = [self._table] if self._table else []
        self._driver = CxlHostPool(host=self._host, state_dir=STATE, pools={1: self._serial}, permission_tables=tables)
        self._moving, self._background = futurist.ThreadPoolExecutor(1), futurist.ThreadPoolExecutor(1)
        pools = HostPools([self._driver])
        built = build_agent(
            conf, self.controller, self._background, pools=pools, mitigating=self._moving, step=self._step
        )
        self._endpoint, self._housekeeper = built.endpoint, built.housekeeper
        self._led = next(item for item in built.endpoints if isinstance(item, MitigationEndpoint))
        self._housekeeper.recover()

    def attach(self, grant: Grant) -> Attachment:
        """Attach a grant."""
        self.controller.grants[grant.consumer_uuid] = grant
        answer = _call(
            self._endpoint.attach,
            operation_id=f"attach-{grant.allocation_uuid}",
            consumer_uuid=grant.consumer_uuid,
            pool_uuid=grant.pool_uuid,
            pool_mib=sum(extent.count for extent in grant.extents) * grant.slice_mib,
            guest_mib=1024,
        )
        return Attachment.from_wire(answer)

    def detach(self, consumer_uuid: str) -> bool:
        """Detach a consumer."""
        return _call(self._endpoint.detach, operation_id=f"detach-{consumer_uuid}", consumer_uuid=consumer_uuid)

    def mitigate(self, operation_id: str, consumer_uuid: str, hold: bool = False) -> Mitigation:
        """Begin; with `hold` it waits before the first chunk that finds some pages moved, until `go_on`."""
        self._hold = hold
        self._consumer = consumer_uuid
        self._reached.clear()
        self._go.clear()
        answer = _call(self._led.mitigate, epoch=EPOCH, operation_id=operation_id, consumer_uuid=consumer_uuid)
        return Mitigation.from_wire(answer)

    def begin_held(self, operation_id: str, consumer_uuid: str) -> Mitigation:
        """Begin one whose slices stay until `release`."""
        answer = _call(
            self._led.mitigate, epoch=EPOCH, operation_id=operation_id, consumer_uuid=consumer_uuid, hold=True
        )
        return Mitigation.from_wire(answer)

    def rewrite(self, consumer_uuid: str) -> DomainRewrite:
        """Bind what libvirt keeps of a guest to local memory."""
        answer = _call(self._led.rewrite_domain, epoch=EPOCH, operation_id="rewrite", consumer_uuid=consumer_uuid)
        return DomainRewrite.from_wire(answer)

    def release(self, consumer_uuid: str) -> bool:
        """Order the slices of a held one back."""
        done = _call(self._led.release_mitigated, epoch=EPOCH, operation_id="release", consumer_uuid=consumer_uuid)
        return bool(done)

    def held(self) -> bool:
        """Wait until it holds."""
        return self._reached.wait(HOLD_SECONDS)

    def go_on(self) -> None:
        """Let it go on."""
        self._hold = False
        self._go.set()

    def abort(self, consumer_uuid: str) -> Mitigation:
        """Abort one."""
        return Mitigation.from_wire(_call(self._led.abort_mitigation, epoch=EPOCH, consumer_uuid=consumer_uuid))

    def progress(self, consumer_uuid: str) -> Mitigation | None:
        """Tell how far it is."""
        found = _call(self._led.get_mitigation, consumer_uuid=consumer_uuid)
        return Mitigation.from_wire(found) if found else None

    def mitigate_killed(self, operation_id: str, consumer_uuid: str, step: str) -> bool:
        """Mitigate in a process of its own that ends, as by kill -9, before a step; "some moved": see `mitigate`.

        True when it was killed there. A fork of this process, whose next life is the caller's `restart`.
        """
        child = os.fork()
        if child == 0:
            try:
                self._kill_at, self._hold, self._consumer = step, False, consumer_uuid
                self.restart()
                self.mitigate(operation_id, consumer_uuid)
                self.finish()
            except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])

    def tidy(self) -> None:
        """Do what each heartbeat does with pool memory."""
        self._housekeeper.tidy(60.0, 3600.0)

    def finish(self) -> None:
        """Wait until all is done that runs in the background, and end that."""
        self._moving.shutdown(wait=True)
        self._background.shutdown(wait=True)

    def attached(self) -> dict[str, bool]:
        """Return the allocations that the driver has, and whether each is in use."""
        return {item.allocation_uuid: item.in_use for item in self._driver.attached()}

    def released(self) -> list[str]:
        """Return what the controller was told of."""
        return self.controller.released

    def pages(self, consumer_uuid: str, node: int) -> tuple[int, bool]:
        """Return a guest's pages on a node, and whether a policy of it names the node and its cpuset permits that."""
        guest = guests.find(consumer_uuid)
        regions, allowed = guest.regions(), cpuset.allowed(guest.pid) or set()
        return numa.pages_on(regions, node), node in allowed and any(node in item.policy_nodes for item in regions)

    def elsewhere(self, consumer_uuid: str, node: int) -> int:
        """Return how many pages of the memory that a guest has bound to a node are on other nodes."""
        mine = [item for item in guests.find(consumer_uuid).regions() if node in item.policy_nodes]
        return sum(pages for item in mine for other, pages in item.pages.items() if other != node)

    def _step(self, name: str) -> None:
        if name == "chunk" and (self._hold or self._kill_at == "some moved"):
            now = self.progress(self._consumer)
            if now is None or not now.pages_moved:
                return
            if self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            self._reached.set()
            self._go.wait(HOLD_SECONDS)
        if name == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
