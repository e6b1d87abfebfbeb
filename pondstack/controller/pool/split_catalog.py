"""What is known of the splits of all instances, numbered by change, so that a scheduler gets what is new to it."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pondstack.domain.known_split import KnownSplit, Present
from pondstack.ledger.store import RememberedSplit

PAGE = 2000
"""Instances in one answer; 10,000 of them are some MiB."""
TOMBSTONES = 5000
"""As many forgotten instances are kept for those that have yet to hear of it; who missed more gets all anew."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What follows a version. `full`: all there is, in place of what was known; `more`: ask again from `version`."""

    version: int
    items: tuple[KnownSplit, ...]
    full: bool
    more: bool


class SplitCatalog:
    """In the leader's memory, newest change last; thread-safe. Version 0 is before the first change."""

    def __init__(self, page: int = PAGE) -> None:
        self._page = page
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[KnownSplit, int]] = {}
        self._version = 0
        self._whole_since = 0
        """Versions before this one have missed forgotten instances."""
        self._gone: dict[str, None] = {}

    def get(self, instance_uuid: str) -> KnownSplit | None:
        """Return what is known of an instance."""
        with self._lock:
            found = self._entries.get(instance_uuid)
        return None if found is None or found[0].gone else found[0]

    def remember(self, items: Iterable[RememberedSplit], *, all_there_is: bool = False) -> None:
        """Take over remembered splits; with `all_there_is` the others are forgotten."""
        given = {item.instance_uuid: item for item in items}
        with self._lock:
            for uuid, item in given.items():
                self._put(replace(self._known(uuid), flavor_key=item.flavor_key, remembered=item.split))
            if all_there_is:
                for uuid in [uuid for uuid, (known, _) in self._entries.items() if known.remembered is not None]:
                    if uuid not in given:
                        self._put(replace(self._known(uuid), flavor_key="", remembered=None))

    def see(self, present: Mapping[str, Present]) -> None:
        """Take over what all instances have now."""
        with self._lock:
            for uuid, has in present.items():
                self._put(replace(self._known(uuid), present=has))
            for uuid in [uuid for uuid, (known, _) in self._entries.items() if known.present is not None]:
                if uuid not in present:
                    self._put(replace(self._known(uuid), present=None))

    def renew(self, wanted: Mapping[str, int]) -> None:
        """Take over what instances get at a cold move in place of what they have; the others keep that."""
        with self._lock:
            for uuid, (known, _) in list(self._entries.items()):
                if not known.gone:
                    self._put(replace(known, renewed_mib=wanted.get(uuid)))

    def without_reason(self) -> set[str]:
        """Return the instances that have pool memory, and of which no split is remembered."""
        with self._lock:
            return {uuid for uuid, (known, _) in self._entries.items() if known.present and known.remembered is None}

    def since(self, version: int) -> Changes:
        """Return what changed after a version of this catalog; 0: all there is."""
        with self._lock:
            full = version < self._whole_since or version == 0 or version > self._version
            start = 0 if version < self._whole_since or version > self._version else version
            newer: list[tuple[KnownSplit, int]] = []
            for known, number in reversed(self._entries.values()):
                if number <= start:
                    break
                newer.append((known, number))
            newer.reverse()
            page = newer[: self._page]
            more = len(newer) > len(page)
            reached = page[-1][1] if more else self._version
        return Changes(reached, tuple(known for known, _ in page), full, more)

    def _known(self, uuid: str) -> KnownSplit:
        found = self._entries.get(uuid)
        return KnownSplit(uuid) if found is None else found[0]

    def _put(self, known: KnownSplit) -> None:
        if self._known(known.instance_uuid) == known:
            return
        self._version += 1
        self._entries.pop(known.instance_uuid, None)
        self._entries[known.instance_uuid] = known, self._version
        self._gone.pop(known.instance_uuid, None)
        if known.gone:
            self._gone[known.instance_uuid] = None
            self._bury()

    def _bury(self) -> None:
        while len(self._gone) > TOMBSTONES:
            uuid = next(iter(self._gone))
            del self._gone[uuid]
            self._whole_since = max(self._whole_since, self._entries.pop(uuid)[1])
