"""Memory that hosts lend at one moment, as the reconciler's rules see it; ages by the database's clock. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pondstack.domain.lending import IN_USE, Buffer, Lender, RemoteAllocation
from pondstack.domain.states import OWNED
from pondstack.domain.transitions import Violation


@dataclass(frozen=True, slots=True)
class AgedBuffer:
    """A buffer and the seconds since it changed."""

    item: Buffer
    age_seconds: float


@dataclass(frozen=True, slots=True)
class AgedLoan:
    """An allocation of lent memory, the seconds since it was made and (None: it is claimed) since it is unclaimed."""

    item: RemoteAllocation
    age_seconds: float
    unclaimed_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LentMemory:
    """Lenders by host, all buffers, and loans by the UUID of their allocation."""

    lenders: Mapping[str, Lender] = field(default_factory=dict)
    buffers: tuple[AgedBuffer, ...] = ()
    loans: Mapping[str, AgedLoan] = field(default_factory=dict)


def contradictions(lent: LentMemory) -> Iterable[Violation]:
    """Return where the ledger contradicts itself about lent memory."""
    for aged in lent.buffers:
        item, owner = aged.item, lent.loans.get(aged.item.allocation_uuid or "")
        if item.state in OWNED and (owner is None or owner.item.host != item.host):
            detail = f"it belongs to {item.host}, and there is no such allocation: {item.allocation_uuid}"
            yield Violation("loan_missing", item.name, detail)
        known = lent.lenders.get(item.lender)
        if item.state in IN_USE and known is not None and known.incarnation != item.incarnation:
            yield Violation("incarnation", item.name, f"it is {item.state} of incarnation {item.incarnation}, now over")
        if item.heir is not None and (item.heir not in lent.loans or item.host is None):
            yield Violation("heir_missing", item.name, f"it is {item.state} and to be handed over to loan {item.heir}")
    held = {uuid for aged in lent.buffers for uuid in (aged.item.allocation_uuid, aged.item.heir)}
    for uuid in lent.loans:
        if uuid not in held:
            yield Violation("loan_empty", f"loan {uuid}", "it has no buffers")
