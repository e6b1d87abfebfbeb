"""The allocations of this host on disk: for whom slices are online, and how far each came.

In the agent's state folder: `cxl/<allocation>.json`, the grant and the boot it came online in, written before the first
change of the kernel and removed after the last (a guest may lock it, see pondstack_agent.qemu.attachment_lock), with
what QEMU maps where the guest maps its slices itself;
`cxl-states/<allocation>.json`, how far it came;
`cxl-dirty/<allocation>.json`, which of its slices may have content: those of the grant, where there is no such file.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pondstack.domain.backing import NODE
from pondstack.domain.model import indexes_of
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl import vacated
from pondstack_agent.drivers.cxl.dax import Step
from pondstack_agent.drivers.grant_records import extents_in
from pondstack_agent.host.boot import BOOT_ID
from pondstack_agent.qemu.attachment_lock import unheld
from pondstack_agent.records import Records

ATTACHING, ONLINE, OFFLINING, OFFLINE_FAILED = "attaching", "online", "offlining", "offline_failed"
BACKINGS = "backings"
RESTARTED = "restarted_with"


class Allocations:
    """Records and states, each durable. Not locked: the driver orders its own writes."""

    def __init__(self, state_dir: Path, step: Step) -> None:
        self._records = Records(state_dir / "cxl")
        self._states = Records(state_dir / "cxl-states")
        self._dirty = Records(state_dir / "cxl-dirty")
        self._step = step
        self._boot = BOOT_ID.read_text().strip()

    def get(self, tag: str) -> dict[str, Any] | None:
        """Return a record, None when there is none."""
        return self._records.get(tag)

    def all(self) -> list[dict[str, Any]]:
        """Return all records."""
        return list(self._records.all().values())

    def indexes(self, pool: str, but: str = "") -> set[int]:
        """Return the slices of a pool that are on record for any allocation `but` one."""
        records = (record for record in self.all() if record["allocation_uuid"] != but)
        mine = [extents_in(record) for record in records if record["pool_uuid"] == pool]
        return {index for extents in mine for index in indexes_of(extents)}

    def consumers(self, kind: str) -> set[str]:
        """Return who has slices here with a kind of backing."""
        return {record["consumer_uuid"] for record in self.all() if kind_of(record) == kind}

    def held(self, own: Mapping[str, Any], but: Collection[str] = ()) -> list[dict[str, Any]]:
        """Return a record and all others whose memory, of the same node, guests may use, `but` some."""
        mine = (record for record in self.all() if record["pool_uuid"] == own["pool_uuid"] and kind_of(record) == NODE)
        others = (record for record in mine if record["allocation_uuid"] not in but)
        return [
            r for r in others if own["allocation_uuid"] == (tag := r["allocation_uuid"]) or self.state(tag) == ONLINE
        ]

    def begin(self, grant: Grant, kind: str = NODE) -> None:
        """Write a grant down, before the first change of the kernel in this boot. `kind`: of its backings."""
        record = self.get(grant.allocation_uuid)
        if record is None:
            self._states.remove(grant.allocation_uuid)  # of a former life that was killed as it forgot the allocation
            self._put_dirty(grant.allocation_uuid, set())
        if record is None or not self.of_this_boot(record):
            other = {} if kind == NODE else {"backing": kind}
            other |= {RESTARTED: record[RESTARTED]} if record and RESTARTED in record else {}
            self._records.put(grant.allocation_uuid, {**grant.to_wire(), "boot": self._boot, **other})

    def note_restart(self, tag: str, heir: str) -> None:
        """Note that the host restarted while an allocation was being handed over to `heir`, "": to nobody."""
        record = self.get(tag)
        if record is not None and heir:
            self._records.put(tag, {**record, RESTARTED: heir})

    def restarted_with(self, tag: str) -> str:
        """Return the heir of an allocation at the restart, "" for none."""
        return str((self.get(tag) or {}).get(RESTARTED, ""))

    def put_backings(self, record: Mapping[str, Any], backings: Sequence[Mapping[str, Any]], table: str) -> None:
        """Write down what QEMU maps, and the folder of the permission table by which it may ("": there is none)."""
        self._records.put(record["allocation_uuid"], {**record, BACKINGS: list(backings), "device_path": table})

    def has_backings(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a guest can be started on a record, by what was there in this boot."""
        return BACKINGS in record and self.of_this_boot(record)

    def drop_backings(self, record: Mapping[str, Any]) -> None:
        """Have nobody find what QEMU maps, in a new file: who waits for a lock on the former one finds it gone."""
        left = {key: value for key, value in record.items() if key not in (BACKINGS, "device_path")}
        self._records.put(record["allocation_uuid"], left)

    def of_this_boot(self, record: Mapping[str, Any]) -> bool:
        """Tell whether the kernel that runs now has had a record's memory."""
        return record.get("boot") == self._boot

    def state(self, tag: str) -> str:
        """Return how far an allocation came."""
        found = self._states.get(tag)
        return found["state"] if found else ATTACHING

    def put_state(self, tag: str, state: str, reason: str = "", **mark: Any) -> None:
        """Write down how far an allocation came; the mark of a guest that left it stays."""
        self._states.put(tag, {"state": state, "reason": reason, **vacated.of(self._states.get(tag)), **mark})

    def vacate(self, record: dict[str, Any], pid: int, node: int) -> None:
        """Note that the guest that runs now left an allocation; raises InUse when by the kernel it did not."""
        tag = record["allocation_uuid"]
        self.put_state(tag, ONLINE, **vacated.mark(record["consumer_uuid"], pid, node))
        # A new file: that guest may hold a lock on the former one, and only its restart may hold this one.
        self._records.put(tag, record)

    def dirty(self, record: Mapping[str, Any]) -> set[int]:
        """Return the slices that may have content; all, if they are not on record, or a former release wrote that."""
        tag = record["allocation_uuid"]
        found = self._dirty.get(tag) if self.get(tag) is not None else None
        return set(found["indexes"]) if found else set(indexes_of(extents_in(record)))

    def mark_dirty(self, record: Mapping[str, Any], indexes: Collection[int]) -> None:
        """Write down, before it can be so, that slices may have content."""
        self._put_dirty(record["allocation_uuid"], self.dirty(record) | set(indexes))

    def mark_clean(self, record: Mapping[str, Any], index: int) -> None:
        """Write down that a slice is for its next owner: this host has zeroed and verified it, or its device does."""
        dirty = self.dirty(record)
        if index in dirty and self.get(record["allocation_uuid"]) is not None:
            self._put_dirty(record["allocation_uuid"], dirty - {index})

    def _put_dirty(self, tag: str, indexes: Collection[int]) -> None:
        self._dirty.put(tag, {"indexes": sorted(indexes)})

    @contextmanager
    def unused(self, record: Mapping[str, Any], running: Mapping[str, int]) -> Iterator[bool]:
        """Keep guests off a record; yields False while one that runs has locked it, or did not leave it."""
        tag = record["allocation_uuid"]
        runs = vacated.runs_on(running.get(record["consumer_uuid"]), self._states.get(tag))
        with unheld(self._records.path(tag)) as free:
            yield free and not runs

    def stuck(self) -> dict[str, str]:
        """Return the allocations whose memory did not go offline: UUID to reason."""
        states = ((tag, self._states.get(tag)) for tag in self._records.all())
        return {tag: item["reason"] for tag, item in states if item and item["state"] == OFFLINE_FAILED}

    def forget(self, tag: str) -> None:
        """Remove record and state; in this order, so that a kill in between leaves no slice without a record."""
        self._step("forget")
        self._records.remove(tag)
        self._states.remove(tag)
        self._dirty.remove(tag)


def kind_of(record: Mapping[str, Any]) -> str:
    """Return the kind of a record's backings, as in pondstack.domain.backing."""
    return str(record.get("backing", NODE))
