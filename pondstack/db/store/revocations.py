"""Credentials that are not believed any more, in SQL. Each function is a part of the caller's transaction.

They are no part of the ledger: an operator revokes one whoever leads, or nobody.
"""

import math

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import RevocationRow


def revoke(session: Session, identity: str) -> float:
    """Have the credentials of ROLE/NAME that were issued until now not be believed; returns the moment.

    Whole seconds: certificates know no others.
    """
    moment = float(math.floor(session.execute(select(now_seconds())).scalar_one()))
    session.execute(delete(RevocationRow).where(RevocationRow.identity == identity))
    session.execute(insert(RevocationRow).values(identity=identity, revoked_at=moment))
    return moment


def revocations(session: Session) -> dict[str, float]:
    """Return the moment of each revocation, in seconds since 1970, by ROLE/NAME."""
    rows = session.execute(select(RevocationRow.identity, RevocationRow.revoked_at))
    return {identity: moment for identity, moment in rows}
