"""The least untouched memory of each instance and node, kept up as samples come, so that it outlives them.

In the transaction that keeps the samples: a batch that came twice counts once. Two hosts that tell of one instance in
the same moment, as in a live migration, may cost one of their looks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from pondstack.db.connection.upsert import upsert
from pondstack.db.models import InstanceRow, LabelRow, table
from pondstack.domain.telemetry import Metric

AT_A_TIME = 500
"""Instances in one statement: SQLite takes so many values, and not many more."""

Key = tuple[str, int]


def fold(session: Session, rows: Sequence[Mapping[str, Any]], gap_seconds: int) -> None:
    """Take rows of the telemetry table into the labels; what has no value changes none."""
    looks = [row for row in rows if row["metric"] == Metric.UNTOUCHED_MIB and row["readings"] > 0]
    consumers = sorted({row["consumer_uuid"] for row in looks})
    for at in range(0, len(consumers), AT_A_TIME):
        some = consumers[at : at + AT_A_TIME]
        chosen = set(some)
        labels, sized = _present(session, some), _sized(session, some)
        changed: dict[Key, dict[str, Any]] = {}
        for row in sorted((row for row in looks if row["consumer_uuid"] in chosen), key=lambda row: row["taken_at"]):
            if row["taken_at"] < sized.get(row["consumer_uuid"], 0):
                continue  # of another flavor
            key = (row["consumer_uuid"], row["node"])
            changed[key] = labels[key] = _folded(labels.get(key), row, gap_seconds)
        upsert(session, table(LabelRow), [changed[key] for key in sorted(changed)])


def forget(session: Session, instance_uuids: Iterable[str]) -> None:
    """Begin anew: an instance has got another flavor, or is forgotten."""
    session.execute(delete(LabelRow).where(LabelRow.instance_uuid.in_(list(instance_uuids))))


def _present(session: Session, consumers: Sequence[str]) -> dict[Key, dict[str, Any]]:
    rows = table(LabelRow)
    found = session.execute(select(rows).where(rows.c.instance_uuid.in_(consumers)))
    return {(row.instance_uuid, row.node): dict(row._mapping) for row in found}


def _sized(session: Session, consumers: Sequence[str]) -> dict[str, int]:
    rows = table(InstanceRow)
    query = select(rows.c.instance_uuid, rows.c.sized_at).where(rows.c.instance_uuid.in_(consumers))
    return {uuid: sized_at for uuid, sized_at in session.execute(query)}


def _folded(label: dict[str, Any] | None, row: Mapping[str, Any], gap_seconds: int) -> dict[str, Any]:
    taken_at, value = row["taken_at"], row["minimum"]
    if label is None:
        return {
            "instance_uuid": row["consumer_uuid"],
            "node": row["node"],
            "untouched_mib": value,
            "first_at": taken_at,
            "observed_until": taken_at,
            "observed_seconds": 0,
            "source": row["source"],
        }
    since = taken_at - label["observed_until"]
    return {
        **label,
        "untouched_mib": min(label["untouched_mib"], value),
        "observed_until": max(label["observed_until"], taken_at),
        "observed_seconds": label["observed_seconds"] + (since if 0 < since <= gap_seconds else 0),
        "source": max(label["source"], row["source"]),
    }
