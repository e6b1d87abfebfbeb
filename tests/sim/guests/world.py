"""Guests on hosts that lend: what Nova places, and that no memory is sold twice. Nothing is told to what is tested."""

import itertools
from typing import TYPE_CHECKING

from pondstack.domain.admission import LendStage, consumers
from pondstack.domain.errors import Unavailable

from ..invariants import Violation
from ..lending.watch import Place
from .compute import SimCompute
from .plan import AUDIT, HOST_MIB, KEPT_MIB, ratio

if TYPE_CHECKING:
    from ..placement import Provider
    from ..plan import Step
    from ..rack import Rack


class GuestsOnLenders:
    """`placed`: guests with a claim. `draining`: Nova places nothing any more."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self._ratio = ratio(rack.history)
        self._numbers = itertools.count(1)
        self._process = rack.scheduler.process("nova-scheduler")
        self.computes = {name: SimCompute(rack, name) for name in rack.hosts}
        self.placed: set[str] = set()

    def start(self) -> None:
        """Start all computes."""
        for compute in self.computes.values():
            compute.start()

    def operate(self, step: "Step") -> None:
        """Begin what happens besides."""
        work = self._audit if step.kind == AUDIT else self._place
        self._rack.scheduler.spawn(self._process, work, step)

    def _place(self, step: "Step") -> None:
        guest, provider = f"guest-{next(self._numbers)}", self._provider(step.target)
        self._rack.moments.pass_by("rpc")
        self.placed.add(guest)
        if self._rack.placement.claim_memory(provider, {guest: step.values["mib"]}):
            self._rack.scheduler.faults["guest placed"] += 1
            self._rack.scheduler.sleep(step.values["seconds"])
            while guest in provider.memory:
                try:
                    self._rack.placement.drop_claim(guest)
                except Unavailable:
                    self._rack.scheduler.sleep(0.5)
        else:
            self._rack.scheduler.faults["guest refused"] += 1
        self.placed.discard(guest)

    def _audit(self, step: "Step") -> None:
        """Do as `nova-manage placement audit --delete`."""
        del step
        for provider in self._rack.placement.providers.values():
            for consumer in sorted(provider.memory.keys() - self.placed):
                self._rack.moments.pass_by("rpc")
                if provider.memory.pop(consumer, None) is not None:
                    provider.generation += 1
                    self._rack.scheduler.faults["claim deleted by an audit"] += 1
                    self._rack.placement.changed()

    def look(self) -> None:
        """See that nobody lends what Nova has sold."""
        for name in self.computes:
            used = sum(mib for guest, mib in self._provider(name).memory.items() if guest in self.placed)
            lent = self._lent(name)
            if used > (HOST_MIB - KEPT_MIB - lent) * self._ratio:
                detail = f"{name} has {HOST_MIB} MiB, guests claim {used} of them, and {lent} may be borrowed"
                raise Violation("sold_twice", detail)

    def _lent(self, name: str) -> int:
        """Return how many buffers of a host's present life may be borrowed, or have a key."""
        life, lent = self._rack.hosts[name].life, self._rack.lent
        assert lent
        if life is None:
            return 0
        found = 0
        for entry in life.book.buffers():
            item = lent.watch.buffers.get(Place(name, life.incarnation, entry.index))
            found += bool(entry.borrower) or (item is not None and item.admitted)
        return found

    def _provider(self, name: str) -> "Provider":
        return self._rack.placement.providers[f"provider-{name}"]

    def disagreements(self) -> list[str]:
        """Return what is not yet consistent: a host waits for memory, or for nothing."""
        found = []
        for name, compute in self.computes.items():
            host = self._rack.hosts[name]
            held = len(host.life.book.buffers()) if host.life else 0
            asleep = self._rack.hosts[name].asleep  # nova-compute tells once it is awake
            if compute.reserved_for()[0] != held and not asleep:
                found.append(f"{name} lends {held} MiB, Placement has {compute.reserved_for()[0]} MiB as lent")
            lend = self._rack.lend_of(name)
            if lend is not None and lend.stage is not LendStage.WAITING:
                found.append(f"{name} is to lend {lend.mib} MiB, and is {lend.stage}: {lend.reason}")
            if lend is None and set(consumers(name)) & self._provider(name).memory.keys():
                found.append(f"memory of {name} is claimed for no lend")
        return found
