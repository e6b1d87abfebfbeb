"""Schema versions: where a database stands, and how to bring it up to date."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from pondstack.db.connection.engine import Database, allow_idle_transactions
from pondstack.domain.errors import Unavailable


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", "pondstack.db:migrations")
    config.attributes["connection"] = connection
    return config


def head() -> str:
    """Return the newest schema version that this code knows."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


def version(database: Database) -> str | None:
    """Return the schema version of the database, None when it is empty."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def demand_head(database: Database) -> None:
    """Raise Unavailable unless the database has the schema that this code knows."""
    found = database.read(lambda session: MigrationContext.configure(session.connection()).get_current_revision())
    if found != head():
        raise Unavailable(
            f"the ledger's schema is {found or 'missing'}, this code needs {head()}: run `pondstack-manage db sync`"
        )


def sync(database: Database, revision: str = "head") -> str | None:
    """Bring the schema up to `revision`; does nothing when it is there. Returns the version afterwards."""
    with database.engine.connect() as connection:
        allow_idle_transactions(connection)
        command.upgrade(_config(connection), revision)
        connection.commit()
    return version(database)
