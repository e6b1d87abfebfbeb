"""The schema that the migrations make is the one of the models, and db sync may be repeated."""

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Float, text

from pondstack.db.connection import migration
from pondstack.db.connection.engine import allow_idle_transactions
from pondstack.db.models import Base
from pondstack.db.read.reader import SqlReader
from pondstack.domain.causes import Cause


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


CAUSES = {
    "agent_down: h1 is silent": ("agent_down", None),
    "agent_lost: h1 does not report it any more": ("agent_lost", None),
    "device_failed: failure 3 of pool0: its device does not answer": ("device_failed", 3),
    "host_fenced: it burns": ("host_fenced", None),
    "lender_lost: its lender does not have this memory any more": ("lender_lost", None),
    "offline_stuck: h1 cannot take it offline: pages": ("offline_stuck", None),
    "permission_differs: the device lets h2 in": ("permission_differs", None),
    "permission_left: the device lets h2 in": ("permission_left", None),
    "sanitize_failed: EIO": ("sanitize_failed", None),
    "unknown_attachment: h1 reports it": ("unknown_attachment", None),
    "set by hand": ("unknown", None),
}


def test_every_cause_is_filled_from_the_reason_of_a_former_release(empty):
    assert {cause for cause, _ in CAUSES.values()} == set(Cause) - {Cause.REVOKE_FAILED}, "that one came later"
    assert migration.sync(empty, "0008") == "0008"
    pool = text(
        "INSERT INTO pools (uuid, name, serial, driver, address, slice_mib, slices_total, state, generation,"
        " created_at) VALUES ('p', 'pool0', 's', 'fake', '{}', 1024, 12, 'up', 0, 1.0)"
    )
    lender = text(
        "INSERT INTO lenders (host, incarnation, kind, buffer_mib, sequence, created_at)"
        " VALUES ('h1', 'life', 'active', 64, 1, 1.0)"
    )
    slice_ = text(
        "INSERT INTO slices (pool_uuid, slice_index, state, host, epoch, reason, changed_at)"
        " VALUES ('p', :index, :state, 'h1', 1, :reason, 1.0)"
    )
    buffer = text(
        "INSERT INTO buffers (incarnation, buffer_index, lender, offset_mib, state, host, generation, leaving, epoch,"
        " reason, changed_at) VALUES ('life', :index, 'h1', 0, :state, 'h2', 1, :leaving, 1, :reason, 1.0)"
    )
    rows = [{"index": index, "state": "quarantined", "reason": reason} for index, reason in enumerate(CAUSES)]
    rows.append({"index": len(rows), "state": "sanitizing", "reason": "agent_down: it was"})
    empty.write(lambda session: [session.execute(statement) for statement in (pool, lender)])
    empty.write(lambda session: [session.execute(slice_, row) for row in rows])
    empty.write(lambda session: [session.execute(buffer, {**row, "leaving": False}) for row in rows])
    assert migration.sync(empty) == migration.head()
    found = text("SELECT reason, cause, failure FROM slices")
    wanted = {**CAUSES, "agent_down: it was": (None, None)}
    told = empty.read(lambda session: session.execute(found).all())
    assert {reason: (cause, failure) for reason, cause, failure in told} == wanted
    told = empty.read(lambda session: session.execute(text("SELECT reason, cause FROM buffers")).all())
    assert dict(map(tuple, told)) == {reason: cause for reason, (cause, _) in wanted.items()}
    read = [aged.item for aged in SqlReader(empty).rack().slices]
    assert {item.reason: (item.cause, item.failure) for item in read} == wanted
