"""How the rack stands at a quiet moment, read from ledger, agents and device; and the journal."""

from sqlalchemy import select

from pondstack.db.models import OperationRow
from pondstack.domain.model import indexes_of
from pondstack.domain.states import SliceState
from pondstack_rack.wait import wait_until
from tests.robustness.history import Entry, Lent, Owner, Place, Standing
from tests.robustness.own_host import OwnHost
from tests.robustness.rack import Rack
from tests.robustness.validate import check_standing

SETTLE_SECONDS = 60.0
LOAN_SECONDS = 150.0
"""What nobody acknowledged is asked back after [controller] assign_timeout_seconds, 90 by default."""
PAGE_ROWS = 500
PASSING = frozenset({SliceState.RELEASING, SliceState.SANITIZING, SliceState.QUARANTINED})


def read_journal(rack: Rack) -> list[Entry]:
    """Return the whole journal in its order, once nothing is written any more.

    Page by page: the server ends a transaction that idles, as one does whose reader turns 30,000 rows into objects.
    """
    columns = (
        OperationRow.sequence,
        OperationRow.operation_id,
        OperationRow.kind,
        OperationRow.epoch,
        OperationRow.effect,
    )
    journal: list[Entry] = []
    while True:
        after = journal[-1].sequence if journal else 0
        page = select(*columns).where(OperationRow.sequence > after).order_by(OperationRow.sequence).limit(PAGE_ROWS)
        rows = rack.database.read(lambda session, page=page: session.execute(page).all())
        journal += [Entry(*row) for row in rows]
        if len(rows) < PAGE_ROWS:
            return journal


def settled(rack: Rack, host: OwnHost, *, free: bool) -> Standing:
    """Wait until nothing is under way (`free`: until every slice is free) and all agree; return how it stands then.

    When that does not come in time the last look is returned: the validation says what is wrong with it.
    """
    last: Standing | None = None

    def quiet() -> bool:
        nonlocal last
        last = look(rack, host)
        states = {state for state, _, _ in last.ledger.values()}
        return not (states & PASSING or (free and states != {"free"}) or any(check_standing(last)))

    wait_until(quiet, SETTLE_SECONDS, 0.5)
    assert last is not None
    return last


def look(rack: Rack, host: OwnHost) -> Standing:
    """Read ledger, agents, device table, and have the controller audit itself."""
    answer = rack.client().audit(repair=False)
    found = tuple(
        f"{item['code']} {item['subject']}: {item['detail']}"
        for item in answer["findings"]
        if item["severity"] != "info"
    )
    view = rack.reader.rack()
    epoch = rack.reader.leader().epoch
    reports = [rack.agent_client().report(name, epoch=epoch) for name in (*rack.agents, host.name)]
    attached: dict[Place, list[Owner]] = {}
    for report in reports:
        for item in report.attached:
            for index in indexes_of(item.extents):
                attached.setdefault((item.pool_uuid, index), []).append((report.host, item.allocation_uuid))
    table = rack.device.permissions()
    ledger = {
        (aged.item.pool_uuid, aged.item.index): (str(aged.item.state), aged.item.host, aged.item.allocation_uuid)
        for aged in view.slices
    }
    permitted = {(rack.pool, index): (entry.host, entry.tag) for index, entry in table.items()}
    return Standing(ledger, attached, permitted, {rack.pool: rack.slices}, found)


def settled_loans(rack: Rack, *, free: bool) -> Lent:
    """Wait until no loan is under way (`free`: until every buffer is free); return how lent memory stands then."""
    last = look_at_loans(rack)

    def quiet() -> bool:
        nonlocal last
        last = look_at_loans(rack)
        states = {state for state, _, _ in last.buffers.values()}
        return states <= ({"free"} if free else {"free", "online"})

    wait_until(quiet, LOAN_SECONDS, 0.5)
    return last


def look_at_loans(rack: Rack) -> Lent:
    """Read what the ledger says of lent memory."""
    found = [item for lender in rack.reader.lenders() for item in rack.reader.buffers(lender.host)]
    return Lent(
        {(item.lender, item.incarnation, item.index): (item.state, item.host, item.allocation_uuid) for item in found},
        tuple(sorted({item.allocation_uuid for item in found if item.allocation_uuid})),
    )
