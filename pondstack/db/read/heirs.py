"""Who does not know what an heir of a slice is, and reads a device's table or the ledger: of a former release."""

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from pondstack.db.models import ControllerRow, HostPoolRow, HostRow
from pondstack.db.store.controllers import DOWN


def strangers(session: Session, pool_uuid: str) -> list[str]:
    """Return the hosts that reach a pool, and the controllers, that do not know what an heir is: for people.

    Those that are silent among them, which may come back; not controllers that were stopped.
    """
    reach = select(HostRow.name, HostRow.hands_over).join(HostPoolRow, HostPoolRow.host == HostRow.name)
    rows = session.execute(reach.where(HostPoolRow.pool_uuid == pool_uuid).order_by(HostRow.name))
    hosts = [f"host {name}" for name, hands_over in rows if pool_uuid not in (hands_over or ())]
    other = or_(ControllerRow.heirs_holder.is_(None), ControllerRow.heirs_holder != ControllerRow.holder)
    controllers = select(ControllerRow.name).where(ControllerRow.role != DOWN, other).order_by(ControllerRow.name)
    return hosts + [f"controller {name}" for name in session.execute(controllers).scalars()]
