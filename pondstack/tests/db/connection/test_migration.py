"""The schema that the migrations make is the one of the models, and db sync may be repeated."""

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Float, text

from pondstack.db.connection import migration
from pondstack.db.connection.engine import allow_idle_transactions
from pondstack.db.models import Base
from pondstack.db.read.reader import SqlReader


def test_sync_is_idempotent_and_reaches_the_models(empty):
    assert migration.version(empty) is None
    assert migration.sync(empty) == migration.head()
    assert migration.sync(empty) == migration.head()
    with empty.engine.connect() as connection:
        allow_idle_transactions(connection)  # alembic thinks between two of its looks
        context = MigrationContext.configure(connection, opts={"compare_type": _differ})
        assert compare_metadata(context, Base.metadata) == []


def _differ(_context, _inspected, _declared, inspected_type, declared_type):
    """MariaDB calls a FLOAT(53) a DOUBLE; alembic decides about everything else."""
    return False if isinstance(inspected_type, Float) and isinstance(declared_type, Float) else None


def test_a_controller_of_the_former_release_goes_on_beside_the_new_schema(empty):
    """Its statements know nothing of when it reached the broker: before, during and after `db sync`."""
    insert = text("INSERT INTO controllers VALUES (:name, 'x:1:y', 'standby', 0, 1.0, 1.0, 0)")
    named = text(
        "INSERT INTO controllers (name, holder, role, epoch, started_at, seen_at, followed_sequence)"
        " VALUES (:name, 'x:1:y', 'standby', 0, 1.0, 1.0, 0)"
    )
    update = text("UPDATE controllers SET seen_at = 2.0, role = 'standby' WHERE name = :name")
    assert migration.sync(empty, "0003") == "0003"
    empty.write(lambda session: session.execute(insert, {"name": "before"}))
    assert migration.sync(empty) == migration.head()
    empty.write(lambda session: session.execute(named, {"name": "after"}))
    empty.write(lambda session: [session.execute(update, {"name": name}) for name in ("before", "after")])
    assert {item.name: item.reached_seconds for item in SqlReader(empty).controllers()} == {
        "after": None,
        "before": None,
    }
