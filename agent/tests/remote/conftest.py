"""Hosts of one machine under a real ledger and settler: real lenders, agents that die at any step."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.domain.errors import AgentUnavailable
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.domain.states import SliceState
from pondstack.domain.units import MIB
from pondstack.rpc.wire import Report
from pondstack_agent.build import build_agent
from pondstack_agent.data_plane.client import DataPlane
from pondstack_agent.data_plane.guest_memory import FindMemory, ProcessStarted
from pondstack_agent.drivers import HostPools
from pondstack_agent.records import Records
from pondstack_agent.remote.remote import RemoteMemory
from tests.fixtures.escrow import SEALER
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

from ..conftest import Later
from ..data_plane.standin import StandinDataPlane
from ..lending.conftest import DEADLINE_SECONDS, TOTAL_MIB, Host

BORROWER = "host9"
CONSUMER = "7ac7e33b-55c9-4f7f-8b23-c4a1f2c52f3b"
PAGE = 4096


def content(page: int, version: int) -> bytes:
    """Return what a test writes: of each page and version another one."""
    return f"{page}.{version};".encode().ljust(32, b".") * (PAGE // 32)


class Killed(BaseException):
    """Ends the agent in mid-flight; nothing of ours may catch it."""


@dataclass
class Fuse:
    """Kills an agent at its `left`-th step from now on; a step is a write to disk or a call, before it and after."""

    left: int = 0
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.left:
            self.left -= 1
            if not self.left:
                raise Killed


class FusedRecords(Records):
    """Records of an agent that may die before or after it writes one."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._fuse = fuse

    def put(self, key: str, record: dict[str, Any]) -> None:
        self._fuse.step()
        super().put(key, record)
        self._fuse.step()


class Controller:
    """The leader's part for lent memory, over the real ledger; agents are called in the caller's thread."""

    def __init__(self, agents: dict[str, Any]) -> None:
        store = MemoryStore()
        self.ledger = MemoryLedger(store, take_over(store))
        self.lenders = Lenders(self.ledger, Agents(agents), lambda: None, SEALER)
        self.settler = BufferSettler(self.ledger, Agents(agents), sealer=SEALER)
        self.away = False

    def heartbeat(self, report: Report) -> dict[str, Any]:
        self.ledger.hosts.heartbeat(report.to_wire())
        return {"epoch": self.ledger.epoch, "forget": [], "pools": {}}

    def delegate(self, *, host, sequence, incarnation, kind, buffer_mib, buffers) -> None:
        lender = Lender(host, incarnation, LenderKind(kind), buffer_mib)
        self.ledger.buffers.delegate(lender, sequence, {item["index"]: item["offset_mib"] for item in buffers})

    def reclaim(self, *, operation_id, host, mib) -> dict[str, Any]:
        return {"indexes": self.lenders.reclaim(operation_id, host, mib)}

    def release_buffers(self, *, operation_id, host, allocation_uuid, lender, incarnation, indexes) -> None:
        del lender
        if allocation_uuid:
            self.lenders.give_back(operation_id, allocation_uuid, host, [(incarnation, index) for index in indexes])

    def borrow(self, operation_id: str, request: BorrowRequest) -> dict[str, Any]:
        if self.away:
            raise AgentUnavailable("the controller is away")
        return self.lenders.borrow(operation_id, request, 1)

    def acknowledge_borrowed(self, *, operation_id, allocation_uuid, host, opened) -> None:
        self.ledger.loans.acknowledge(operation_id, allocation_uuid, host, opened)

    def states(self) -> dict[str, int]:
        """Count buffers by state."""
        found: dict[str, int] = {}
        for item in self.ledger.buffers.find():
            found[item.state] = found.get(item.state, 0) + 1
        return found


class Fused:
    """The controller, or the data plane, as an agent calls it that may die before a call, or before its answer."""

    def __init__(self, called: Any, fuse: Fuse) -> None:
        self._called, self._fuse = called, fuse

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._called, name)
        if name == "blocks":  # of the data plane
            return Fused(method, self._fuse)  # type: ignore[return-value]

        def call(*arguments: Any, **named: Any) -> Any:
            self._fuse.step()
            answer = method(*arguments, **named)
            self._fuse.step()
            return answer

        call.__name__ = name
        return call


class Agents:
    """The controller's calls of agents, with arguments as JSON leaves them: numbers of buffers as keys are texts."""

    def __init__(self, hosts: dict[str, Any]) -> None:
        self._hosts = hosts

    def export(self, host: str, **arguments: Any) -> dict[str, Any]:
        answer = self._hosts[host].calls.export(**json.loads(json.dumps(arguments)))
        return {**answer, "keys": {str(index): key for index, key in answer["keys"].items()}}

    def escrow(self, host: str, **arguments: Any) -> dict[str, Any]:
        return self._hosts[host].calls.escrow(**json.loads(json.dumps(arguments)))

    def share(self, host: str, **arguments: Any) -> dict[str, Any]:
        return self._hosts[host].calls.share(**json.loads(json.dumps(arguments)))

    def connect(self, host: str, **arguments: Any) -> bool:
        return self._hosts[host].calls.connect(**json.loads(json.dumps(arguments)))

    def revoke(self, host: str, **arguments: Any) -> list[int]:
        return self._hosts[host].calls.revoke(**json.loads(json.dumps(arguments)))

    def prepare(self, host: str, **arguments: Any) -> list[int]:
        return self._hosts[host].calls.prepare(**json.loads(json.dumps(arguments)))

    def give_back(self, host: str, **arguments: Any) -> list[int]:
        return self._hosts[host].calls.give_back(**json.loads(json.dumps(arguments)))


class NotedLinks:
    """Links of a data plane that says so."""

    def __init__(self) -> None:
        self.found: set[tuple[str, str]] = set()

    def connect(self, lender: str, incarnation: str, ticket: Any) -> None:
        assert ticket
        self.found.add((lender, incarnation))

    def alive(self) -> set[tuple[str, str]]:
        return self.found


@dataclass
class RemoteHost(Host):
    """A host whose agent dies when its fuse says so."""

    fuse: Fuse = field(default_factory=Fuse)
    data_plane: StandinDataPlane | None = field(default_factory=StandinDataPlane)
    real: tuple[DataPlane, FindMemory, ProcessStarted] | None = None
    """Another data plane, and how its guests are found."""
    linked: NotedLinks | None = field(default_factory=NotedLinks)
    """None: those of its data plane."""

    def restart(self) -> None:
        self.fuse.left = 0
        self.later = Later()
        self.agent = build_agent(
            self.conf,
            Fused(self.controller, self.fuse),  # type: ignore[arg-type]
            self.later,
            pools=HostPools([]),
            clock=lambda: self.now,
            meminfo=lambda: (self.available_mib * MIB, TOTAL_MIB * MIB),
            growth_mib=lambda: 0,
            records=lambda folder: FusedRecords(folder, self.fuse),
            **self._data_plane(),
            links=self.linked,
        )
        self.borrower.recover()
        self.remote.recover()
        self.later.run()

    def _data_plane(self) -> dict[str, Any]:
        if self.real is None and self.data_plane is None:
            return {}
        played = self.data_plane
        plane, find, started = self.real or (played, played.find, played.started)
        return {"data_plane": Fused(plane, self.fuse), "find_memory": find, "process_started": started}

    @property
    def remote(self) -> RemoteMemory:
        assert self.agent.remote
        return self.agent.remote

    def attach_swap(self, mib: int) -> dict[str, Any]:
        """Have the consumer's swap disk served."""
        found = self.calls.attach_swap(consumer_uuid=CONSUMER, mib=mib)
        self.later.run()
        return found

    def release_swap(self) -> bool:
        """End it."""
        found = self.calls.release_swap(consumer_uuid=CONSUMER)
        self.later.run()
        return found

    def swap(self) -> dict[str, Any]:
        """Return what the consumer has as its swap disk."""
        found = self.calls.get_swap(consumer_uuid=CONSUMER)
        assert found
        return found

    def beat(self) -> None:
        self.now += 1.0
        super().beat()
        self.remote.maintain(3600.0)
        self.later.run()

    def alloc(self, mib: int, operation: str = "alloc1", source: str = "") -> dict[str, Any]:
        """Borrow for the consumer, all or nothing; `source`: the host that it comes from."""
        return self.calls.alloc_ext(operation_id=operation, consumer_uuid=CONSUMER, mib=mib, source=source)

    def release(self) -> bool:
        """Give all of it back."""
        found = self.calls.release_remote(consumer_uuid=CONSUMER)
        self.later.run()
        return found

    def view(self) -> dict[str, Any]:
        """Return what the consumer has."""
        found = self.calls.get_remote(consumer_uuid=CONSUMER)
        assert found
        return found


@dataclass
class Rack:
    """Hosts by name."""

    root: Path
    hosts: dict[str, RemoteHost] = field(default_factory=dict)
    controller: Controller = field(init=False)

    def __post_init__(self) -> None:
        self.controller = Controller(self.hosts)

    def __getitem__(self, name: str) -> RemoteHost:
        if name not in self.hosts:
            conf = cfg.ConfigOpts()
            agent_conf.register_opts(conf)
            conf([], default_config_files=[])
            conf.set_override("host", name)
            conf.set_override("state_dir", str(self.root / name), group="agent")
            overrides = {"transport": "shm", "shm_folder": str(self.root), "buffer_mib": 1, "reserve_mib": 1024}
            overrides["lender_timeout_seconds"] = DEADLINE_SECONDS  # its start takes long on a busy machine
            for option, value in overrides.items():
                conf.set_override(option, value, group="lending")
            planes = {"disk_user": "root", "mirror_mib": 64, "leave_seconds": 0.3, "grow_seconds": 0.5}
            for option, value in planes.items():
                conf.set_override(option, value, group="data_plane")
            self.hosts[name] = RemoteHost(conf, self.controller)  # type: ignore[arg-type]
            self.hosts[name].beat()
        return self.hosts[name]

    @property
    def borrower(self) -> RemoteHost:
        return self[BORROWER]

    def lend(self, name: str, mib: int) -> None:
        """Have a host lend, and the controller know."""
        self[name].lend(mib, operation=str(uuid4()))

    def reclaim(self, name: str, mib: int) -> None:
        """Have a host want memory back; who uses it is asked."""
        self[name].calls.reclaim(epoch=1, operation_id=str(uuid4()), mib=mib, seconds=3600.0)

    def turn(self, rounds: int = 1, names: Sequence[str] = ()) -> None:
        """Let all agents and the settler go on."""
        for _ in range(rounds):
            self.controller.settler.run()
            for name in names or list(self.hosts):
                self.hosts[name].later.run()
                self.hosts[name].beat()

    def turn_until(self, condition: Callable[[], bool], rounds: int = 20) -> None:
        """Let all go on until a condition holds."""
        for _ in range(rounds):
            if condition():
                return
            self.turn()
        raise AssertionError((self.controller.ledger.buffers.find(), self.borrower.remote.views()))

    def done(self, name: str) -> bool:
        """Whether a host's lends and reclaims have ended."""
        return all(each["state"] == "done" for each in self[name].lending.get_lending()["operations"])

    def sleep(self, name: str, mib: int) -> None:
        """Have a host lend as one that is to sleep, and all keys of it made for the borrower."""
        self[name].lend(mib, kind="zombie")
        assert self.borrower
        for _ in range(2):
            self.controller.settler.run()
            self.borrower.beat()

    def free(self) -> bool:
        """Whether nothing is lent to anybody."""
        return set(self.controller.states()) <= {SliceState.FREE}


@pytest.fixture
def rack() -> Iterator[Rack]:
    """Hosts of a machine, whose processes end with the test."""
    root = Path(tempfile.mkdtemp(prefix="rem-"))  # short: an address of a Unix socket has 107 bytes
    made = Rack(root)
    try:
        yield made
    finally:
        for host in made.hosts.values():
            host.end()
        shutil.rmtree(root, ignore_errors=True)
