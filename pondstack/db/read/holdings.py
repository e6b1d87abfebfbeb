"""What hosts hold for themselves, as readers are told of it, in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from pondstack.db.models import AllocationRow, SliceRow
from pondstack.db.store import holdings
from pondstack.domain.states import SliceState


def by_host(session: Session, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return what each of these hosts holds or is to hold, by pool and purpose."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    wanted = [item for item in holdings.find(session) if item.host in found]
    key = AllocationRow.host, AllocationRow.pool_uuid, AllocationRow.purpose
    online = (
        select(*key, func.count())
        .join(SliceRow, SliceRow.allocation_uuid == AllocationRow.uuid)
        .where(AllocationRow.host.in_(names), SliceRow.state == str(SliceState.ONLINE))
        .group_by(*key)
    )
    counts = {(host, pool, purpose): count for host, pool, purpose, count in session.execute(online)} if wanted else {}
    for item in wanted:
        found[item.host].append(item.told(counts.get((item.host, item.pool_uuid, str(item.purpose)), 0)))
    return found
