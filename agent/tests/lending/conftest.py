"""Hosts of one machine that lend each other buffers of 1 MiB over shared memory, each by a real pondstack-lender."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack.domain.errors import PondError
from pondstack.domain.units import MIB
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.borrower.records import Held
from pondstack_agent.build import Agent, build_agent
from pondstack_agent.drivers import HostPools
from pondstack_agent.lending.lending import Lending
from pondstack_agent.lending.program import LENDER
from pondstack_rack.wait import wait_until
from tests.fixtures.fake_controller import FakeController
from tests.fixtures.rpc_call import call

from ..conftest import Later
from .links import LenderLink

TOTAL_MIB = 65536
DEADLINE_SECONDS = 60.0


@dataclass
class Owner:
    """Owns pages in borrowed memory: notes what it is told, may refuse to leave."""

    told: list[tuple[str, str, list[int]]] = field(default_factory=list)
    stays: PondError | None = None

    def arrived(self, allocation_uuid: str, _held: Held, indexes: Sequence[int]) -> None:
        self.told.append(("arrived", allocation_uuid, list(indexes)))

    def leave(self, allocation_uuid: str, _held: Held, indexes: Sequence[int]) -> None:
        if self.stays:
            raise self.stays
        self.told.append(("leave", allocation_uuid, list(indexes)))

    def lost(self, allocation_uuid: str, _held: Held, indexes: Sequence[int]) -> None:
        self.told.append(("lost", allocation_uuid, list(indexes)))


class Calls:
    """The methods of an agent that others may call, without a bus; errors come out as themselves."""

    def __init__(self, endpoints: Sequence[Any]) -> None:
        self._endpoints = endpoints

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(call, next(getattr(each, name) for each in self._endpoints if hasattr(each, name)))


@dataclass
class Host:
    """An agent over the fake controller; `available_mib` stands for MemAvailable, of a host that never has less."""

    conf: cfg.ConfigOpts
    controller: FakeController
    now: float = 1000.0
    available_mib: int = TOTAL_MIB
    growth_mib: int = 0
    owner: Owner = field(default_factory=Owner)
    links: dict[tuple[str, str], LenderLink] = field(default_factory=dict)
    later: Later = field(init=False)
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget all that is not on disk or in the lender's process, and start again."""
        self.later = Later()
        self.agent = build_agent(
            self.conf,
            self.controller,
            self.later,
            pools=HostPools([]),
            clock=lambda: self.now,
            meminfo=lambda: (self.available_mib * MIB, TOTAL_MIB * MIB),
            growth_mib=lambda: self.growth_mib,
            pages=self.owner,
        )
        self.borrower.recover()
        self.later.run()

    @property
    def calls(self) -> Calls:
        """As the controller calls its agent."""
        return Calls(self.agent.endpoints)

    @property
    def lending(self) -> Lending:
        assert self.agent.lending
        return self.agent.lending

    @property
    def borrower(self) -> Borrower:
        assert self.agent.borrower
        return self.agent.borrower

    @property
    def pid(self) -> int:
        """Of the lender's process."""
        return LENDER.pid(self.folder)

    @property
    def folder(self) -> Path:
        """Of the lender's process."""
        return Path(self.conf.agent.state_dir) / "lender"

    def lend(self, mib: int, kind: str = "active", operation: str = "lend1") -> dict[str, Any]:
        """Lend, and tell the controller."""
        self.calls.lend(epoch=1, operation_id=operation, mib=mib, kind=kind)
        self.later.run()
        return self.lending.get_lending()

    def beat(self) -> None:
        """One turn of the heartbeat's thread, and what it starts in the background."""
        self.agent.reporter.heartbeat()
        for side in (self.lending, self.borrower):
            side.maintain(3600.0)
        self.later.run()

    def link(self, lender: str, incarnation: str) -> LenderLink:
        """Return the link of whoever owns the pages here; the same one while this host lives."""
        name = lender, incarnation
        if name not in self.links:
            self.links[name] = LenderLink(self.conf, self.borrower, *name)
        return self.links[name]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the lender's process for a block, as a cgroup's freezer does."""
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)
        assert wait_until(lambda: state_of(pid) == "T", DEADLINE_SECONDS)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the lender's process, as a crash does, and wait for its end."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        # The first of its threads may have ended before the others.
        assert wait_until(lambda: state_of(pid) in ("", "Z") and not LENDER.runs(self.folder), DEADLINE_SECONDS)

    def end(self) -> None:
        """Leave nothing behind."""
        for link in self.links.values():
            link.close()
        with contextlib.suppress(OSError, ValueError, KeyError):
            if b"pondstack_agent.lending" in Path(f"/proc/{self.pid}/cmdline").read_bytes():
                self.kill()


def state_of(pid: int) -> str:
    """Return the state of a process, '' when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@dataclass
class Rack:
    """Hosts by name, under one controller."""

    root: Path
    controller: FakeController
    hosts: dict[str, Host] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Host:
        if name not in self.hosts:
            conf = cfg.ConfigOpts()
            agent_conf.register_opts(conf)
            conf([], default_config_files=[])
            conf.set_override("host", name)
            conf.set_override("state_dir", str(self.root / name), group="agent")
            overrides = {"transport": "shm", "shm_folder": str(self.root), "buffer_mib": 1, "reserve_mib": 1024}
            for option, value in overrides.items():
                conf.set_override(option, value, group="lending")
            self.hosts[name] = Host(conf, self.controller)
        return self.hosts[name]

    def borrow_buffers(
        self, indexes: Sequence[int], lender: str = "host1", borrower: str = "host2", allocation: str = "allocation1"
    ) -> str:
        """Export buffers and have them noted, as the controller does; returns the lender's incarnation."""
        answer = self[lender].calls.export(epoch=1, indexes=indexes, borrower=borrower)
        self[borrower].calls.prepare(epoch=1, lender=lender, allocation_uuid=allocation, **answer)
        incarnation: str = answer["incarnation"]
        return incarnation


@pytest.fixture
def rack() -> Iterator[Rack]:
    """Hosts of a machine, whose lenders end with the test."""
    root = Path(tempfile.mkdtemp(prefix="lend-"))  # short: an address of a Unix socket has 107 bytes
    made = Rack(root, FakeController({}))
    try:
        yield made
    finally:
        for host in made.hosts.values():
            host.end()
        shutil.rmtree(root, ignore_errors=True)
