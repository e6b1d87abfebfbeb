"""Lent memory of a history: what joins lenders, borrowers and operators with the rack."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pondstack.controller.lending.sealing import KEY_BYTES, EscrowSealer
from pondstack.domain.escrow import EscrowedKey
from pondstack.domain.lending import LenderKind, waits_for_its_key
from pondstack.domain.states import SliceState
from pondstack.domain.units import MIB
from pondstack_agent.build import Agent
from tests.fixtures.memory import buffers as memory_buffers
from tests.fixtures.memory.store import Transaction

from .. import settings
from ..api import SimControllerAPI
from ..kernel import Process
from . import offers
from .claims import LoanClaims
from .lender import DRIVER, Life, SimClient, SimTransport
from .moves import Moves
from .plan import BUFFER_MIB
from .tenant import FAILED
from .watch import LendWatch

if TYPE_CHECKING:
    from ..host import SimHost
    from ..plan import Step
    from ..rack import Rack

RECLAIM_SECONDS = 6.0
ESCROW_SECONDS = 2.5
"""So long a host that wants to sleep waits for its keys to be in escrow."""
WAKE_SECONDS = 40.0
"""So long an operator tries to have a host lend as one that is awake: longer than any reclaim waits."""
HOST_BYTES = 64 * 1024**3


class WatchedSealer(EscrowSealer):
    """Shows the watch what the controllers disclose."""

    def __init__(self, keys: Mapping[str, bytes], watch: LendWatch) -> None:
        super().__init__(keys)
        self._watch = watch

    def open(self, key: EscrowedKey) -> dict[str, Any]:
        """Return the content of a key."""
        content = super().open(key)
        self._watch.disclosed(key, content["key"]["number"])
        return content


class NoFolder(PurePosixPath):
    """A folder of nobody's disk."""

    def mkdir(self, **_named: Any) -> None:
        """Have it."""

    def chmod(self, _mode: int) -> None:
        """Have it so."""


class LendingWorld:
    """Everything of lent memory in one history."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self.watch = LendWatch(self)
        self.process = rack.scheduler.process("operator")
        # One stream for all lives: a process that starts again draws what its former self drew.
        self.births = rack.scheduler.process("births").rng
        self._at_work = 0
        self._draining = False
        self._unanswered: set[str] = set()
        self.claims = LoanClaims(rack) if rack.history.claims else None
        self.moves = Moves(rack)

    def lives(self) -> list[Life]:
        """Return the present lives of all hosts' lent memory."""
        return [host.life for host in self._rack.hosts.values() if host.life is not None]

    def memory_of(self, host: "SimHost") -> tuple[int, int]:
        """Return how much memory of a host is available, and how much it has in all, in bytes."""
        if self._rack.history.rooms is None:
            return HOST_BYTES, HOST_BYTES
        lent = len(host.life.book.buffers()) if host.life is not None else 0
        return (self._rack.history.rooms[host.name] - lent) * BUFFER_MIB * MIB, HOST_BYTES

    def looked(self) -> None:
        """Have what guests claim compared, too, where there are guests."""
        if self._rack.guests is not None:
            self._rack.guests.look()

    def committed(self, transaction: Transaction) -> None:
        """Show the watch what a commit did to buffers."""
        tables = transaction.tables
        if transaction.touched(tables.buffers) or transaction.touched(tables.lenders):
            before = self.watch.buffers
            self.watch.ledger_changed(memory_buffers.everything(transaction))
            self.watch.assigned(before, memory_buffers.links(transaction))

    def gave_way(self, buffers: int) -> None:
        """Count buffers that best-effort loans are to give up for guaranteed ones."""
        if buffers:
            self._rack.scheduler.faults["best effort gave way"] += buffers

    def sealer(self) -> "WatchedSealer":
        """Return what a controller seals keys in escrow with: all have the same key."""
        return WatchedSealer({"2026": bytes(KEY_BYTES)}, self.watch)

    # How the code under test is joined with it

    def stand_ins(self) -> dict[str, dict[str, Any]]:
        """Return what to put in the place of names of the agent's modules."""

        def of(name: str) -> "SimHost":
            return self._rack.hosts[name]

        return {
            "pondstack_agent.lending.build": {
                "LenderClient": lambda _folder, command, _seconds: SimClient(of(command.host)),
                "Path": NoFolder,
                "options_of": lambda _group: {},
            },
            "pondstack_agent.borrower.build": {
                "load_transport": lambda _name, _options: SimTransport,
                "options_of": lambda _group: {},
            },
        }

    def conf(self) -> SimpleNamespace:
        """Return [lending] of an agent."""
        return SimpleNamespace(
            transport=DRIVER,
            buffer_mib=BUFFER_MIB,
            launcher="",
            lender_timeout_seconds=1.0,
            reclaim_seconds=RECLAIM_SECONDS,
            reserve_mib=0,
            pressure_mib=0,
            most_mib=0,
        )

    def serve(self, host: "SimHost", agent: Agent) -> list[Any]:
        """Have a new life of an agent take part; returns the endpoints that it has besides."""
        host.tenant.agent = agent
        host.tenant.began()
        assert agent.borrower
        agent.borrower.recover()
        return list(agent.endpoints[1:])

    def beat(self, host: "SimHost", agent: Agent, controller: SimControllerAPI) -> None:
        """One turn of the agent's heartbeat."""
        assert agent.lending
        assert agent.borrower
        agent.lending.maintain(settings.KEEP_SECONDS)
        agent.borrower.maintain(settings.KEEP_SECONDS)
        host.tenant.tidy(controller)

    # What operators and tenants do

    def operate(self, step: "Step") -> None:
        """Begin an operation."""
        host = self._rack.hosts[step.target]
        if step.kind in ("borrow", "give_back", "unclaim"):
            if host.agent_up and host.process is not None and host.tenant.agent is not None:
                self._rack.scheduler.spawn(host.process, self.tenant, step, host)
            return
        self._at_work += 1
        self._rack.scheduler.spawn(self.process, self._operator, step, host)

    def _client(self, process: Process) -> SimControllerAPI:
        rack = self._rack
        return SimControllerAPI(rack.network, rack.moments, rack.scheduler, 3.0, process.rng)

    def tenant(self, step: "Step", host: "SimHost") -> None:
        """Do what a guest's host does, in the host's own process."""
        assert host.process
        controller = self._client(host.process)
        if step.kind == "borrow":
            host.tenant.borrow(host.process, controller, step)
        elif step.kind == "unclaim":
            host.tenant.unclaim(step)
        elif mine := [loan for loan in host.tenant.loans if not loan.moves]:
            host.tenant.give_back(controller, mine[step.values["which"] % len(mine)])

    def _operator(self, step: "Step", host: "SimHost") -> None:
        controller, scheduler = self._client(self.process), self._rack.scheduler
        try:
            if step.kind == "lend":
                self._lend(controller, host, step.values["buffers"], LenderKind.ACTIVE)
            elif step.kind == "reclaim":
                mib = step.values["buffers"] * BUFFER_MIB
                seconds = step.values["seconds"]
                controller.reclaim_host(name=host.name, mib=mib, seconds=seconds, operation_id=self._new_id())
            elif step.kind == "move":
                self.moves.run(step, host)
            else:
                self._sleep(controller, host, step.values["seconds"])
        except FAILED as error:
            scheduler.note(f"{step} failed: {error}")
        finally:
            self._at_work -= 1

    def _new_id(self) -> str:
        return str(UUID(int=self.process.rng.getrandbits(128), version=4))

    def _lend(self, controller: SimControllerAPI, host: "SimHost", buffers: int, kind: LenderKind) -> None:
        mib = buffers * BUFFER_MIB
        try:
            controller.delegate_host(name=host.name, mib=mib, kind=str(kind), operation_id=self._new_id())
        except FAILED:
            self._unanswered.add(host.name)
            raise

    def _sleep(self, controller: SimControllerAPI, host: "SimHost", seconds: float) -> None:
        """Have a host lend as a zombie, freeze it, and wake it."""
        scheduler = self._rack.scheduler
        lent = len(host.life.book.buffers()) if host.life else 2
        self._lend(controller, host, lent, LenderKind.ZOMBIE)
        scheduler.sleep(ESCROW_SECONDS)
        if host.life is None or host.life.kind is not LenderKind.ZOMBIE or host.process is None:
            return
        self.freeze(host, seconds)
        host.process.paused_until = scheduler.now + seconds
        scheduler.faults["zombie slept"] += 1
        scheduler.sleep(seconds)
        self._wake(controller, host, lent)

    def _wake(self, controller: SimControllerAPI, host: "SimHost", buffers: int) -> None:
        """Have a host that is awake lend as one, as its operator does: again while it is busy, or nobody answers.

        The keys of a zombie are not ended, so that nothing of it comes back.
        """
        deadline = self._rack.scheduler.now + WAKE_SECONDS
        while True:
            try:
                return self._lend(controller, host, buffers, LenderKind.ACTIVE)
            except FAILED as error:
                if self._rack.scheduler.now > deadline:
                    raise
                self._rack.scheduler.note(f"{host.name} is told again that it is awake: {error}")
                self._rack.scheduler.sleep(1.0)

    def freeze(self, host: "SimHost", seconds: float) -> None:
        """Freeze the lender's process."""
        if host.life is not None:
            host.life.frozen_until = self._rack.scheduler.now + seconds
            self._rack.scheduler.faults["lender frozen"] += 1

    def end_keys_partly(self, host: "SimHost", seconds: float) -> None:
        """Have the lender's process end only some of the keys that it is told to end."""
        if host.life is not None:
            host.life.partly_until = self._rack.scheduler.now + seconds

    def kill_lender(self, host: "SimHost") -> None:
        """Kill the lender's process: its memory is gone."""
        if host.life is not None:
            host.life = None
            self._rack.scheduler.faults["lender killed"] += 1

    # The end

    def stop_faults(self) -> None:
        """Thaw what is frozen, and have lenders end all keys that they are told to end."""
        for life in self.lives():
            life.frozen_until = life.partly_until = 0.0

    def drain(self) -> None:
        """Have everybody give everything back, and lenders take everything back."""
        self._draining = True
        for host in self._rack.hosts.values():
            for loan in host.tenant.loans:
                loan.leaving = True
        self._at_work += 1
        offers.begin(self._rack)
        self._rack.scheduler.spawn(self.process, self._take_all_back)

    def _take_all_back(self) -> None:
        """Wake every lender and have it take back what it lends, without any force.

        An agent that was paused when it was told to lend carries that out once it goes on, although the operator has
        long given up: such a host is looked at again. Whatever else a host lends from then on is left over.
        """
        controller, hosts = self._client(self.process), self._rack.hosts.values()
        try:
            for host in hosts:
                self._empty(controller, host)
        finally:
            self._at_work -= 1
        while True:
            for host in hosts:
                slept = self._rack.plans is not None and host.life is not None  # it may have been asked to lend since
                if slept or host.name in self._unanswered or self._is_about_to_lend(host):
                    self._empty(controller, host)
            self._rack.scheduler.sleep(1.0)

    def _empty(self, controller: SimControllerAPI, host: "SimHost") -> None:
        while host.life is not None or self._is_about_to_lend(host) or self._is_to_lend(host):
            try:
                if host.life is not None and host.life.kind is LenderKind.ZOMBIE:
                    self._lend(controller, host, len(host.life.book.buffers()), LenderKind.ACTIVE)
                    self._lent(host)
                operation_id = self._new_id()
                controller.reclaim_host(name=host.name, mib=1 << 20, seconds=3600.0, operation_id=operation_id)
            except FAILED as error:
                self._rack.scheduler.note(f"{host.name} lends on: {error}")
            self._rack.scheduler.sleep(1.0)

    @staticmethod
    def _is_about_to_lend(host: "SimHost") -> bool:
        """Return whether a host has a lend on its disk that it has not ended, as an operator is shown."""
        entries = host.memory.folder("lending").values()
        return any(entry["verb"] == "lend" and entry["state"] != "done" for entry in entries)

    def _lent(self, host: "SimHost") -> None:
        """Wait until a host is awake: nothing comes back from one that sleeps."""
        while self._is_to_lend(host):
            self._rack.scheduler.sleep(0.5)

    def _is_to_lend(self, host: "SimHost") -> bool:
        return self._rack.guests is not None and self._rack.lend_of(host.name) is not None

    def disagreements(self) -> list[str]:
        """Return what is not yet consistent."""
        found = ["operators are at work"] if self._at_work else []
        for host in self._rack.hosts.values():
            present = host.life.incarnation if host.life else ""
            there = {entry.index for entry in host.life.book.buffers()} if host.life else set()
            mine = {p.index for p in self.watch.buffers if p.lender == host.name and p.incarnation == present}
            if there != mine:
                found.append(f"{host.name} lends {sorted(there)}, the ledger says {sorted(mine)}")
        for place, item in self.watch.buffers.items():
            if item.host is not None and self._rack.hosts[item.host].asleep:
                continue  # who has it gives it back once it is awake
            ends = item.state is SliceState.SANITIZING or waits_for_its_key(item)
            if ends and item.kind is LenderKind.ZOMBIE and not self._draining:
                continue  # no key of it ends until its lender is awake
            if (item.escrowed or item.promised_to) and item.kind is LenderKind.ACTIVE:
                found.append(f"buffer {place.index} of {place.lender}, which is awake, has keys in escrow")
            if item.shared and item.heir is None and item.kind is LenderKind.ACTIVE:
                found.append(f"buffer {place.index} of {place.lender}, which is awake, has keys of two hosts")
            if item.state not in (SliceState.FREE, SliceState.ONLINE):
                found.append(f"buffer {place.index} of {place.lender} is {item.state} ({item.reason})")
            elif item.state is SliceState.ONLINE and place not in self.watch.users:
                found.append(f"buffer {place.index} of {place.lender} is lent to {item.host}, which does not use it")
        if self.claims is not None:
            found += self.claims.missing(self.watch.buffers)
        if self._rack.history.offers is not None:
            found += offers.disagreements(self._rack)
        if self._draining and (self.watch.buffers or self.lives()):
            found.append(f"{len(self.watch.buffers)} buffers and {len(self.lives())} lenders are left")
        return found
