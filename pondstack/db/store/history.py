"""The history of instances in SQL: Nova's words, in whatever order and however often they come.

As telemetry it is no part of the ledger and not fenced by the epoch: what a former leader heard is true all the same.
"""

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from oslo_db.exception import DBDuplicateEntry
from oslo_log import log
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.connection.upsert import upsert
from pondstack.db.models import CounterRow, HistoryRow, InstanceRow, LabelRow, table
from pondstack.db.store import counters, labels
from pondstack.domain.history import InstanceFacts, name_key

LOG = log.getLogger(__name__)

ROW = 1
_SALT_BYTES = 32
_TEXT = {"project_id": 255, "flavor_name": 255, "image_uuid": 36, "image_os": 255, "zone": 255}
"""Described by Nova's newest word, unless that says nothing of it; to so many characters."""


class History:
    """Writes the history. Thread-safe; raises Unavailable when the database does not answer in time."""

    def __init__(self, database: Database, keep_seconds: Callable[[], int]) -> None:
        """`keep_seconds()`: how long a deleted instance is kept."""
        self._database = database
        self._keep_seconds = keep_seconds
        self._known_salt: str | None = None

    def record(self, facts: Sequence[InstanceFacts]) -> None:
        """Take what Nova says; an older word than the last one only fills in what is not known."""
        if not facts:
            return
        salt = self._salt()
        for at in range(0, len(facts), labels.AT_A_TIME):
            self._database.write(partial(_record, facts=facts[at : at + labels.AT_A_TIME], salt=salt))

    def name_images(self, systems: dict[str, str]) -> None:
        """Keep the operating systems of images, by image."""
        self._database.write(lambda session: _name_images(session, systems))

    def unnamed_images(self) -> list[str]:
        """Return images of which no operating system is known, of the newest instances first."""
        rows = InstanceRow
        query = (
            select(rows.image_uuid)
            .where(rows.image_os == "", rows.image_uuid != "")
            .group_by(rows.image_uuid)
            .order_by(func.max(rows.created_at).desc())
        )
        return list(self._database.read(lambda session: session.execute(query).scalars().all()))

    def read_until(self) -> int | None:
        """Return until when Nova's changes were read, None: never yet."""
        query = select(HistoryRow.read_until).where(HistoryRow.id == ROW)
        return self._database.read(lambda session: session.execute(query).scalar())

    def now(self) -> int:
        """Return the present moment by the database's clock."""
        return self._database.read(lambda session: int(session.execute(select(now_seconds())).scalar_one()))

    def complete(self, since: int, until: int) -> None:
        """Note that Nova's instances were read: of all that were there at `since` or later, as of `until`."""
        self._salt()
        row, mine = HistoryRow, HistoryRow.id == ROW

        def note(session: Session) -> None:
            session.execute(update(row).where(mine, row.complete_since.is_(None)).values(complete_since=since))
            later = (row.read_until.is_(None)) | (row.read_until < until)
            session.execute(update(row).where(mine, later).values(read_until=until))

        self._database.write(note)

    def tidy(self) -> None:
        """Forget who was deleted long ago, and labels of whom Nova never told."""
        self._database.write(lambda session: _prune(session, self._keep_seconds()))

    def _salt(self) -> str:
        """Return the cloud's salt, which is made once and never changes: the hashes would match no more."""
        if self._known_salt is None:
            self._known_salt = self._read_salt() or self._made_salt()
        return self._known_salt

    def _read_salt(self) -> str | None:
        query = select(HistoryRow.salt).where(HistoryRow.id == ROW)
        return self._database.read(lambda session: session.execute(query).scalar())

    def _made_salt(self) -> str:
        row = {"id": ROW, "salt": secrets.token_hex(_SALT_BYTES)}
        try:
            self._database.write(lambda session: session.execute(insert(table(HistoryRow)), [row]))
        except DBDuplicateEntry:
            LOG.info("Another controller has made the salt of the history")
        found = self._read_salt()
        assert found is not None
        return found


def _record(session: Session, facts: Sequence[InstanceFacts], salt: str) -> None:
    rows = table(InstanceRow)
    uuids = [item.instance_uuid for item in facts]
    found = session.execute(select(rows).where(rows.c.instance_uuid.in_(uuids)))
    present = {row.instance_uuid: dict(row._mapping) for row in found}
    systems = _systems(session, facts)
    changed: dict[str, dict[str, Any]] = {}
    resized: set[str] = set()
    for item in sorted(facts, key=lambda item: item.changed_at):
        uuid = item.instance_uuid
        before, now = present.get(uuid), _row(item, salt)
        now["image_os"] = now["image_os"] or systems.get(item.image_uuid, "")
        after = now if before is None else _joined(before, now)
        if before is not None and after["sized_at"] > before["sized_at"]:
            resized.add(uuid)
        if after != before:
            present[uuid] = changed[uuid] = after
    if resized:
        labels.forget(session, sorted(resized))
        counters.forget(session, sorted(resized))
    upsert(session, rows, [changed[uuid] for uuid in sorted(changed)])


def _systems(session: Session, facts: Sequence[InstanceFacts]) -> dict[str, str]:
    """Return the operating systems of images that earlier instances were made from."""
    rows, images = InstanceRow, sorted({item.image_uuid for item in facts} - {""})
    query = (
        select(rows.image_uuid, func.max(rows.image_os)).where(rows.image_uuid.in_(images)).group_by(rows.image_uuid)
    )
    return {image: system for image, system in session.execute(query)}


def _row(item: InstanceFacts, salt: str) -> dict[str, Any]:
    created_at = int(item.created_at.timestamp())
    return {
        "instance_uuid": item.instance_uuid,
        **{name: getattr(item, name)[:characters] for name, characters in _TEXT.items()},
        "memory_mib": item.memory_mib,
        "vcpus": item.vcpus,
        "name_key": name_key(item.name, salt),
        "created_at": created_at,
        "sized_at": created_at,
        "changed_at": int(item.changed_at.timestamp()),
        "deleted_at": None if item.deleted_at is None else int(item.deleted_at.timestamp()),
    }


def _joined(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what is known after another word: of what changes by the newer one, of what is known once by either."""
    older, newer = (before, now) if now["changed_at"] >= before["changed_at"] else (now, before)
    text = {name: newer[name] or older[name] for name in (*_TEXT, "name_key")}
    if newer["image_uuid"] not in ("", older["image_uuid"]):
        text["image_os"] = newer["image_os"]  # rebuilt from another image, whose system may not be known yet
    ends = [row["deleted_at"] for row in (before, now) if row["deleted_at"] is not None]
    resized = now is newer and now["memory_mib"] != before["memory_mib"]
    return {
        **newer,
        **text,
        "created_at": min(before["created_at"], now["created_at"]),
        "sized_at": now["changed_at"] if resized else before["sized_at"],
        "deleted_at": min(ends, default=None),
    }


def _name_images(session: Session, systems: dict[str, str]) -> None:
    rows = table(InstanceRow)
    for image, system in sorted(systems.items()):
        session.execute(
            update(rows).where(rows.c.image_uuid == image, rows.c.image_os == "").values(image_os=system[:255])
        )


def _prune(session: Session, keep_seconds: int) -> None:
    oldest = int(session.execute(select(now_seconds())).scalar_one()) - keep_seconds
    old = select(InstanceRow.instance_uuid).where(InstanceRow.deleted_at < oldest)
    session.execute(delete(LabelRow).where(LabelRow.instance_uuid.in_(old)))
    session.execute(delete(CounterRow).where(CounterRow.instance_uuid.in_(old)))
    session.execute(delete(InstanceRow).where(InstanceRow.deleted_at < oldest))
    known = select(InstanceRow.instance_uuid)
    for row in (LabelRow, CounterRow):
        session.execute(delete(row).where(row.observed_until < oldest, row.instance_uuid.not_in(known)))
