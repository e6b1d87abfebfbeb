"""The registry of prediction models, read; see pondstack.ledger.reader.ModelReader."""

from pondstack.db.connection.engine import Database
from pondstack.db.store import registry
from pondstack.ledger.records import ModelRecord


class SqlModels:
    """Each method is one read-only transaction; no blob is read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def models(self, *, limit: int | None = None, marker: str | None = None) -> list[ModelRecord]:
        """List the models, the newest first; raises NotFound for an unknown marker."""
        return self._database.read(lambda session: registry.models(session, limit=limit, marker=marker))

    def model(self, version: str) -> ModelRecord:
        """Return one model; raises NotFound."""
        return self._database.read(lambda session: registry.find(session, version))
