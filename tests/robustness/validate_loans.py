"""Judges the loans of a run: none that was acknowledged is lost, no buffer has two users, all memory comes back."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.robustness.history import Lent, Loan
from tests.robustness.model import Broken


def check_loans(loans: Sequence[Loan], held: Lent | None, drained: Lent | None) -> list[Broken]:
    """Return every broken promise about lent memory; `held`: with loans still held, `drained`: after all went back."""
    broken = [*_bytes(loans), *_users(loans)]
    if held is not None:
        broken += _lost(loans, held)
    if drained is not None:
        broken += _left(drained)
    return broken


def _bytes(loans: Iterable[Loan]) -> Iterable[Broken]:
    for loan in loans:
        for text in loan.wrong:
            yield Broken("loan_bytes", f"allocation {loan.allocation_uuid} of {loan.host}: {text}", loan.operation_id)


def _users(loans: Iterable[Loan]) -> Iterable[Broken]:
    """By the answers alone: from its acknowledgement to the beginning of its return a buffer is nobody else's."""
    used: dict[tuple[str, str, int], list[tuple[float, float, Loan]]] = {}
    for loan in loans:
        if loan.acknowledged is not None:
            ends = float("inf") if loan.returned is None else loan.returned
            for place in loan.buffers:
                used.setdefault(place, []).append((loan.acknowledged, ends, loan))
    for (lender, _, index), spans in used.items():
        for (_, ends, first), (begins, _, second) in pairwise(sorted(spans, key=lambda span: span[0])):
            if begins < ends:
                detail = f"buffer {lender}/{index}: {first.allocation_uuid} and {second.allocation_uuid} had it"
                yield Broken("double_user", detail, second.operation_id)


def _lost(loans: Iterable[Loan], held: Lent) -> Iterable[Broken]:
    """What was acknowledged and is still held is its borrower's in the ledger."""
    for loan in loans:
        if loan.acknowledged is None or loan.returned is not None:
            continue
        for place in loan.buffers:
            found = held.buffers.get(place)
            if found != ("online", loan.host, loan.allocation_uuid):
                yield Broken("loan_lost", f"buffer {place[0]}/{place[2]} of {loan.host} is {found}", loan.operation_id)


def _left(drained: Lent) -> Iterable[Broken]:
    for (lender, _, index), (state, host, _) in sorted(drained.buffers.items()):
        if state != "free":
            yield Broken("loan_left", f"buffer {lender}/{index} is {state}, of {host}, after all was given back")
    for uuid in drained.allocations:
        yield Broken("loan_left", f"allocation {uuid} is left")
    if not drained.returned:
        yield Broken("lent_left", "hosts do not have all their memory back")
