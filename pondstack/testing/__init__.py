"""What tests of all components share, and what the rack is built from."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pondstack.db.engine import Database


def lead(database: "Database", holder: str = "test") -> int:
    """Take the lead at once, whoever has the lease; return the epoch."""
    from pondstack.testing.leading import take_over  # the ledger's imports only for those who need them

    return take_over(database, holder)
