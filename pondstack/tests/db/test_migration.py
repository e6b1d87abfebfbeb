"""The schema that the migrations make is the one of the models, and db sync may be repeated."""

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Float

from pondstack.db import migration
from pondstack.db.models import Base


def test_sync_is_idempotent_and_reaches_the_models(empty):
    assert migration.version(empty) is None
    assert migration.sync(empty) == migration.head()
    assert migration.sync(empty) == migration.head()
    with empty.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": _differ})
        assert compare_metadata(context, Base.metadata) == []


def _differ(_context, _inspected, _declared, inspected_type, declared_type):
    """MariaDB calls a FLOAT(53) a DOUBLE; alembic decides about everything else."""
    return False if isinstance(inspected_type, Float) and isinstance(declared_type, Float) else None
