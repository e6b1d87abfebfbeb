"""A small world for tests of the rules of lent memory: h1 lends four buffers, h2 borrows two of them, guaranteed."""

from dataclasses import dataclass, field, replace
from typing import Any

from pondstack.controller.reconcile.holders import Claims
from pondstack.controller.reconcile.observation import Limits, Observation
from pondstack.domain.lending import Buffer, Lender, LenderKind, RemoteAllocation
from pondstack.domain.lent_memory import AgedBuffer, AgedLoan, LentMemory
from pondstack.domain.rack import HostReport, RackView
from pondstack.domain.states import SliceState
from pondstack.tests.controller.builders import DOWN, OLD, REPORT_AGE

LIFE, SIZE, LOAN, VM = "life-1", 64, "loan-1", "vm1"
SEQUENCE = 7
"""Of the reports; the lender's last word is older."""


@dataclass
class LentBuilder:
    """An observation in which everything agrees; a test breaks one thing. `told`: runs of h1's report."""

    buffers: dict[int, AgedBuffer] = field(default_factory=dict)
    lender: Lender = field(default_factory=lambda: Lender("h1", LIFE, LenderKind.ACTIVE, SIZE, SEQUENCE - 1))
    loans: dict[str, AgedLoan] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    books: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, int] | None = field(default_factory=lambda: {VM: 2 * SIZE})
    claimed_on: str = "h2"
    ages: dict[str, float] = field(default_factory=lambda: {"h1": REPORT_AGE, "h2": REPORT_AGE})
    fenced: dict[str, str] = field(default_factory=dict)
    links: list[list[str]] | None = None
    disks: dict[str, int] = field(default_factory=dict)
    """Of h2."""
    stranded: list[dict[str, Any]] = field(default_factory=list)
    """The same."""
    mirrors: dict[str, int] | None = field(default_factory=dict)
    unclaimed_disks: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index in range(4):
            mine = {"state": SliceState.ONLINE, "host": "h2", "allocation_uuid": LOAN} if index < 2 else {}
            self.put(index, generation=3, **mine)
        self.loans[LOAN] = AgedLoan(RemoteAllocation(LOAN, VM, "h2", guaranteed=True), OLD)
        self.told = {
            "incarnation": LIFE,
            "kind": "active",
            "buffer_mib": SIZE,
            "answers": True,
            "operations": [{"operation_id": "op", "verb": "lend", "state": "done"}],
            "buffers": [[0, 2, "h2", 3], [2, 2, "", 3]],
        }
        self.books = {
            "lender": "h1",
            "incarnation": LIFE,
            "allocations": {LOAN: [0, 1]},
            "leaving": {},
            "released": [],
        }

    def put(self, index: int, *, age: float = OLD, **values: Any) -> "LentBuilder":
        """Set one buffer; what is not said stays."""
        old = self.buffers.get(index)
        item = old.item if old else Buffer("h1", LIFE, index, index * SIZE, SIZE)
        self.buffers[index] = AgedBuffer(replace(item, **values), age)
        return self

    def release(self, index: int, state: SliceState = SliceState.FREE, **values: Any) -> "LentBuilder":
        """Have nobody own one buffer."""
        return self.put(index, state=state, host=None, allocation_uuid=None, **values)

    def age_loan(self, unclaimed: float | None, **values: Any) -> "LentBuilder":
        """Have nobody claim the loan for so long."""
        self.loans[LOAN] = AgedLoan(replace(self.loans[LOAN].item, **values), OLD, unclaimed)
        self.claims = {} if unclaimed is not None else self.claims
        return self

    def observation(self, **limits: float) -> Observation:
        """Return it."""

        def report(name: str) -> HostReport:
            return HostReport(
                name,
                True,
                "",
                f"provider-{name}",
                self.ages[name],
                fenced=self.fenced.get(name),
                sequence=SEQUENCE,
                lending=self.told if name == "h1" else None,
                borrowed=self._borrowed() if name == "h2" else None,
            )

        mirrors = {} if self.mirrors is None else {"h2": self.mirrors}
        claims = Claims({}, {self.claimed_on: dict.fromkeys(self.claims or (), 0)}, self.claims, mirrors)
        lent = LentMemory({"h1": self.lender}, tuple(aged for _, aged in sorted(self.buffers.items())), self.loans)
        view = RackView(hosts={name: report(name) for name in self.ages}, lent=lent)
        return Observation(view, claims, limits=Limits(**limits), unclaimed_disks=self.unclaimed_disks)

    def _borrowed(self) -> dict[str, Any]:
        found: dict[str, Any] = {"lenders": [self.books]}
        if self.links is not None:
            found["links"] = self.links
        found |= {"stranded": self.stranded} if self.stranded else {}
        return found | ({"swap_disks": self.disks} if self.disks else {})

    def forget_disk(self, seconds: float = 31.0) -> "LentBuilder":
        """Have the loan be that of a swap disk which nobody has claimed for so long."""
        self.disks, self.unclaimed_disks = {VM: 2 * SIZE}, {("h2", VM): seconds}
        return self.age_loan(seconds, guaranteed=False)

    def silence(self, host: str) -> "LentBuilder":
        """Have a host's agent go down."""
        self.ages[host] = DOWN
        return self
