"""What operators set per project, read; see pondstack.ledger.reader.ProjectReader."""

from pondstack.db.connection.engine import Database
from pondstack.db.store import project_settings
from pondstack.ledger.records import ProjectRecord


class SqlProjects:
    """Each method is one read-only transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def projects(self, *, limit: int | None = None, marker: str | None = None) -> list[ProjectRecord]:
        """List the projects that have something set, by id; raises NotFound for an unknown marker."""
        return self._database.read(lambda session: project_settings.projects(session, limit=limit, marker=marker))

    def project(self, project_id: str) -> ProjectRecord:
        """Return what is set for a project, which may be nothing."""
        return self._database.read(lambda session: project_settings.find(session, project_id))
