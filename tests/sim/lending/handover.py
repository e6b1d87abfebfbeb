"""What two data planes do when a guest moves by reference, in a history (doc/source/contributor/data-plane.md).

freeze (source) -> table (sealed, to the destination) -> switch -> the mirror is filled of the lenders -> delivered
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..invariants import Violation
from .watch import Place

if TYPE_CHECKING:
    from ..host import SimHost
    from ..rack import Rack
    from .tenant import Loan


@dataclass
class Handover:
    """Of one guest. `there`: the destination's loan, with `handed` places of `loan`."""

    rack: "Rack"
    source: "SimHost"
    target: "SimHost"
    loan: "Loan"
    there: "Loan"

    def run(self, fills_seconds: float) -> None:
        """Hand all over; the guest is at the destination then, and its source is needed no more."""
        self.freeze()
        self.table()
        self.switch()
        self.fill(fills_seconds)

    def freeze(self) -> None:
        """Have nobody write at the source."""
        self.loan.frozen = True

    def table(self) -> None:
        """Tell the destination what lenders have."""
        self.there.versions |= {place: self.loan.versions.get(place, b"") for place in self.there.handed}

    def switch(self) -> None:
        """Have the guest be the destination's."""
        assert self.rack.lent
        users = self.rack.lent.watch.users
        for place in sorted(self.there.handed & self.there.places):
            users[place] = self.target.name, self.there.uuid
        self.rack.lent.watch.look()

    def fill(self, seconds: float) -> None:
        """Have the destination's mirror have all pages, one after the other, of lenders or else of the source."""
        mine = sorted(self.there.handed & self.there.places)
        for place in mine:
            self.rack.scheduler.sleep(seconds / len(mine))
            if self.target.process is None or self.there.leaving:
                return  # its host is gone, and the guest with it
            self._fill_one(place)
        self.there.handed.clear()
        if self.target.tenant.agent is not None:
            self.target.tenant.run_guest(self.there)

    def _fill_one(self, place: Place) -> None:
        if self.source.process is not None and self.source.tenant.agent is not None:
            self.source.tenant.run_guest(self.loan)  # which does not run there
        if place not in self.there.versions:
            raise Violation("page_without_version", f"{self.target.name} does not know what {place} is to have in it")
        found = self.target.tenant.read(place) if self.target.tenant.agent is not None else None
        expected = self.there.versions[place]
        if found is not None and expected and found != expected:
            about = f"{self.target.name} finds {found!r} in {place}, not {expected!r}"
            raise Violation("page_changed", about)
        if found is not None and expected:
            self.rack.scheduler.faults["page handed over"] += 1
        elif self.has_mirror():
            self.rack.scheduler.faults["page copied after all"] += 1
        elif self.source.process is not None:
            raise Violation("page_lost", f"{place} does not give its page, and {self.source.name} has no mirror of it")

    def has_mirror(self) -> bool:
        """Return whether the source has its mirror yet: until it has delivered all."""
        return self.source.process is not None
