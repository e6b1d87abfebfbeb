"""The mitigations that there were, as the monitor counts them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import MitigationRow
from pondstack.domain.mitigation import MitigationState
from pondstack.qos.pace import Past


def read_past(session: Session) -> list[Past]:
    """Return all mitigations that are kept, whoever began them."""
    row = MitigationRow
    query = select(row.consumer_uuid, row.host, row.state, row.ended_at, now_seconds() - row.created_at)
    return [
        Past(uuid, host, ended_at is None, float(age), failed=state == MitigationState.FAILED)
        for uuid, host, state, ended_at, age in session.execute(query)
    ]
