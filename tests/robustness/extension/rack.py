"""A host with a guest half of whose memory is remote, two hosts that lend, two controllers, as real processes.

The guest is a stock QEMU without KVM, whose own program verifies the words that it wrote: the oracle is in the guest.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from pondstack.domain.errors import PondError, Unavailable
from pondstack.domain.states import SliceState
from pondstack.ledger.records import BufferRecord
from pondstack_agent.data_plane.client import ControlClient
from pondstack_agent.data_plane.views import GuestView, LeaseState
from pondstack_agent.lending.program import LENDER
from pondstack_rack.daemon import DaemonFailed
from pondstack_rack.wait import Deadline, wait_until
from rdma.tests.data_plane.processes import DataPlane
from rdma.tests.data_plane.qemu_guest import QemuGuest, initramfs
from tests.robustness.brokers import Broker
from tests.robustness.caller import NO_ANSWER
from tests.robustness.databases import Store
from tests.robustness.rack import PROGRAMS, Rack

T = TypeVar("T")

BORROWER, LENDERS = "host-a", ("host-b", "host-c")
CONSUMER = "7ac7e33b-55c9-4f7f-8b23-c4a1f2c52f3b"
RAM_MIB, LOCAL_MIB = 320, 160
REMOTE_MIB = RAM_MIB - LOCAL_MIB
WORDS_MIB = 236
"""What the guest verifies: so much more than is local that 32 % of random accesses miss, and those more that find what
the guest's kernel has of it. The kernel needs the rest, also to boot."""
BUFFER_MIB = 4
BUFFERS = REMOTE_MIB // BUFFER_MIB
SLICES = 4
SECONDS = 300.0
"""For what comes at some time, on however busy a machine."""
ANSWER_SECONDS = 2.0
USER = "root"

AGENT = """
[lending]
buffer_mib = {buffer_mib}
[data_plane]
folder = {folder}/plane
mirror_folder = {folder}/mirrors
mirror_mib = {mirror_mib}
grow_seconds = 5
"""


class ExtendedRack:
    """Made, started, and closed once; `folder` keeps configuration and logs."""

    def __init__(self, folder: Path, broker: Broker, store: Store, seed: int, rest_us: int = 0) -> None:
        self._folder, self._seed, self._rest_us = folder, seed, rest_us
        # Short: the address of a Unix socket has 107 bytes.
        self._place = Path(tempfile.mkdtemp(prefix="ps-ext-", dir="/tmp"))
        self.mirrors = self._place / "mirrors"
        self.mirrors.mkdir()
        more = AGENT.format(folder=self._place, buffer_mib=BUFFER_MIB, mirror_mib=RAM_MIB)
        lends = AGENT.partition("[data_plane]")[0].format(buffer_mib=BUFFER_MIB)
        agents = {BORROWER: more} | dict.fromkeys(LENDERS, lends)
        self.rack = Rack(folder, broker, store, slices=SLICES, agents=agents)
        self.plane = DataPlane(PROGRAMS / "pondstack-data-plane", self._place / "plane", USER, str(self.mirrors))
        self.plane.large_files = True
        self.client = ControlClient(self.plane.folder, ANSWER_SECONDS)
        self.plane_lives = 0
        """How many data planes there have been."""
        self._guest: QemuGuest | None = None

    @property
    def guest(self) -> QemuGuest:
        """The guest, once it was booted."""
        assert self._guest
        return self._guest

    def lender_pid(self, host: str) -> int:
        """Return the process that holds what a host lends."""
        return LENDER.pid(self._lender_folder(host))

    def _lender_folder(self, host: str) -> Path:
        return self._folder / f"state-{host}" / "lender"

    def start(self) -> None:
        """Start all processes, have two hosts lend, and boot a guest whose remote half is with them."""
        self.start_plane()
        self.rack.start()
        for host in LENDERS:
            self.lend(host)
        image = initramfs(self._place)
        named = ("-uuid", CONSUMER)
        self._guest = QemuGuest(image, WORDS_MIB, RAM_MIB, seed=self._seed, more=named, rest_us=self._rest_us)
        self.guest.await_memory()
        agents, operation_id = self.rack.agent_client(), str(uuid4())
        self._patiently(
            lambda: agents.alloc_ext(BORROWER, operation_id=operation_id, consumer_uuid=CONSUMER, mib=REMOTE_MIB)
        )
        self._patiently(
            lambda: agents.extend(BORROWER, consumer_uuid=CONSUMER, memory_mib=RAM_MIB, local_mib=LOCAL_MIB)
        )
        self.guest.await_ready()

    def start_plane(self) -> None:
        """Start the data plane, and wait until it answers."""
        self.plane_lives += 1
        self.plane.start()
        self.plane.await_ready()

    def lend(self, host: str) -> None:
        """Have a host lend as much as the guest borrows, as an operator does; also after its lender was killed."""
        agents, controller = self.rack.agent_client(), self.rack.client()

        def lent() -> bool:
            try:
                if len(agents.get_lending(host)["buffers"]) >= BUFFERS and LENDER.runs(self._lender_folder(host)):
                    return True
                controller.delegate_host(name=host, mib=REMOTE_MIB, kind="active")
            except (*NO_ANSWER, PondError):  # its agent has not noticed the loss yet, or is starting
                pass
            return False

        if not wait_until(lent, SECONDS, 0.5):
            raise DaemonFailed(f"host {host} does not lend; see its agent's log in {self._folder}")

    def view(self) -> GuestView | None:
        """Return what the data plane says of the guest; raises Unavailable."""
        return self.client.view(CONSUMER)

    def heal(self) -> None:
        """See that after a strike everything serves again: controllers, agents, lenders."""
        self.rack.wait_healthy()
        for host in LENDERS:
            self.lend(host)
        self._patiently(lambda: self.rack.agent_client().get_remote(BORROWER, consumer_uuid=CONSUMER))

    def _patiently(self, call: Callable[[], T]) -> T:
        """Call until there is an answer."""
        deadline = Deadline(SECONDS)
        while True:
            try:
                return call()
            except NO_ANSWER:
                if deadline.over:
                    raise
                deadline.pause(0.5)

    def buffers(self) -> list[BufferRecord]:
        """Return what the ledger says of lent memory."""
        reader = self.rack.reader
        return [item for lender in reader.lenders() for item in reader.buffers(lender.host)]

    def disagreements(self) -> list[str]:
        """Return in what ledger, agent and data plane differ, and what is not as it was asked for."""
        try:
            return [*self._differences(), *self._findings()]
        except (*NO_ANSWER, PondError) as error:
            return [f"no answer: {error}"]

    def _differences(self) -> list[str]:
        reader = self.rack.reader
        passing = {str(item.state) for item in self.buffers()} - {SliceState.FREE, SliceState.ONLINE}
        ledger = {(item.lender, item.incarnation, item.index) for item in self.buffers() if item.host == BORROWER}
        report = self.rack.agent_client().report(BORROWER, epoch=reader.leader().epoch)
        agent = {
            (held["lender"], held["incarnation"], index)
            for held in (report.borrowed or {}).get("lenders", ())
            for indexes in held["allocations"].values()
            for index in indexes
        }
        seen = self.view()
        leases = seen.leases if seen else ()
        plane = Counter(lease.lender for lease in leases if lease.state is LeaseState.ACTIVE)
        told = Counter(f"{lender}@{incarnation}" for lender, incarnation, _ in agent)
        wrong = [f"buffers are {', '.join(sorted(passing))}"] if passing else []
        if len(ledger) != BUFFERS:
            wrong.append(f"the guest has {len(ledger)} buffers, not {BUFFERS}")
        if ledger != agent:
            wrong.append(f"ledger and agent differ in {sorted(ledger ^ agent)}")
        if told != plane or len(leases) != plane.total():
            wrong.append(f"the agent has {dict(told)}, the data plane {[(each.lender, each.state) for each in leases]}")
        if seen is None or seen.limit_mib != LOCAL_MIB or (seen.resident_mib or 0) > LOCAL_MIB:
            wrong.append(f"the data plane keeps another limit than {LOCAL_MIB} MiB: {seen}")
        return wrong

    def _findings(self) -> list[str]:
        found = self.rack.client().audit(repair=False)["findings"]
        return [f"{item['code']} {item['subject']}: {item['detail']}" for item in found if item["severity"] != "info"]

    def release(self) -> list[str]:
        """Give all back after the guest's end, as Nova does, and have hosts take it back; returns what is left over."""
        agents, controller = self.rack.agent_client(), self.rack.client()
        self._patiently(lambda: agents.release_remote(BORROWER, consumer_uuid=CONSUMER))
        left: list[str] = []

        def given_back() -> bool:
            left[:] = self._left()
            return not left

        if not wait_until(given_back, SECONDS, 0.5):
            return left
        for host in LENDERS:
            self._patiently(lambda host=host: controller.reclaim_host(name=host, mib=REMOTE_MIB, seconds=SECONDS))
        if not wait_until(lambda: not self.rack.reader.lenders(), SECONDS, 0.5):
            left.append("hosts have not got all back that they lent")
        return left

    def _left(self) -> list[str]:
        try:
            used = [f"buffer {item.lender}/{item.index} is {item.state}" for item in self.buffers() if item.host]
            remote = self.rack.agent_client().get_remote(BORROWER, consumer_uuid=CONSUMER)
            guests = [f"the data plane has guest {view.guest}" for view in self.client.guests()]
        except (*NO_ANSWER, Unavailable) as error:
            return [f"no answer: {error}"]
        mirrors = [f"mirror {path.name}" for path in self.mirrors.iterdir()]
        return [*used, *([f"the agent has {remote}"] if remote else []), *guests, *mirrors]

    def close(self) -> None:
        """End all processes, whatever became of them; the logs stay."""
        try:
            if self._guest is not None:
                self._guest.kill()
            if self.plane.runs:
                self.plane.kill()
            self.rack.stop()
        finally:
            log = self._place / "data-plane.log"
            if log.exists():
                shutil.copy(log, self._folder)
            shutil.rmtree(self._place, ignore_errors=True)
