"""The ledger on each database; see tests.fixtures.ledgers."""

from tests.fixtures.ledgers import database, empty, ledger, reader, url

__all__ = ["database", "empty", "ledger", "reader", "url"]
