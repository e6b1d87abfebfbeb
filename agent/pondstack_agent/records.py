"""A folder of small JSON records that survive a crash: each one is wholly there or wholly absent."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pondstack.devices.atomic_files import sync_folder, write_json
from pondstack.devices.private_folder import private_folder
from pondstack.domain.errors import BadRequest, DeviceFailed

_SUFFIX = ".json"
_MAX_NAME = 200


class Records:
    """One record per key. Not locked: the caller orders its own writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        private_folder(folder)

    def path(self, key: str) -> Path:
        """Return the file of a key; raises BadRequest when the key is empty or too long for a file name."""
        name = quote(key, safe="")
        if not name or name.startswith(".") or len(name) > _MAX_NAME:
            raise BadRequest(f"the id {key[:50]!r} is empty, hidden or longer than {_MAX_NAME} characters; use a UUID")
        return self.folder / f"{name}{_SUFFIX}"

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Write a record durably."""
        write_json(self.path(key), record)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a record, None when there is none."""
        return _load(self.path(key))

    def remove(self, key: str) -> bool:
        """Remove a record durably; False when there was none."""
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            return False
        sync_folder(self.folder)
        return True

    def all(self) -> dict[str, dict[str, Any]]:
        """Return all records by key."""
        with os.scandir(self.folder) as entries:
            names = sorted(e.name for e in entries if e.name.endswith(_SUFFIX) and not e.name.startswith("."))
        found = {unquote(name[: -len(_SUFFIX)]): _load(self.folder / name) for name in names}
        return {key: record for key, record in found.items() if record is not None}


def _load(path: Path) -> dict[str, Any] | None:
    with contextlib.suppress(FileNotFoundError):
        try:
            record = json.loads(path.read_text())
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise DeviceFailed(
                f"the agent's state file {path} is damaged ({error}); stop the agent, move the file away, "
                "audit the ledger"
            ) from error
        return record
    return None
