"""A folder of small JSON records that survive a crash: each one is wholly there or wholly absent.

What a record of the agent has to be is declared in state_shapes; one that is not is neither written nor believed.
Standard library only, because the head of a guest reads one.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pondstack.devices.atomic_files import sync_folder, write_json
from pondstack.devices.private_folder import private_folder
from pondstack.domain.errors import BadRequest, DeviceFailed
from pondstack_agent.state_shapes import MOVE_AWAY, shape_of

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
        """Write a record durably; raises BadRequest when it could not be read back."""
        path, shape = self.path(key), shape_of(self.folder.name, key)
        if shape is not None:
            try:
                shape.check(key, json.loads(json.dumps(record)))  # as it will be read: JSON has only texts for keys
            except ValueError as error:
                raise BadRequest(f"this cannot be put on record in {self.folder.name}: {error}") from error
        write_json(path, record)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a record, None when there is none; raises DeviceFailed, which names a file that is damaged."""
        return load(self.path(key))

    def remove(self, key: str) -> bool:
        """Remove a record durably; False when there was none."""
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            return False
        sync_folder(self.folder)
        return True

    def all(self) -> dict[str, dict[str, Any]]:
        """Return all records by key; raises DeviceFailed, which names a file that is damaged."""
        found = {key_of(path): load(path) for path in paths(self.folder)}
        return {key: record for key, record in found.items() if record is not None}


def paths(folder: Path) -> list[Path]:
    """Return the files of a folder's records, by name."""
    with os.scandir(folder) as entries:
        names = sorted(e.name for e in entries if e.name.endswith(_SUFFIX) and not e.name.startswith("."))
    return [folder / name for name in names]


def key_of(path: Path) -> str:
    """Return the key of a record's file."""
    return unquote(path.name[: -len(_SUFFIX)])


def load(path: Path) -> dict[str, Any] | None:
    """Return the record in a file, None when there is none; raises DeviceFailed when it is none of its folder's."""
    with contextlib.suppress(FileNotFoundError):
        try:
            return _read(path)
        except (ValueError, RecursionError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            shape = shape_of(path.parent.name, key_of(path))
            remedy = MOVE_AWAY if shape is None else shape.remedy
            raise DeviceFailed(f"the agent's state file {path} is damaged ({error}); {remedy}") from error
    return None


def _read(path: Path) -> dict[str, Any]:
    key = key_of(path)
    record = json.loads(path.read_text(), parse_constant=_refuse)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    if quote(key, safe="") != path.name[: -len(_SUFFIX)]:
        raise ValueError("its name is none that an agent gives")
    shape = shape_of(path.parent.name, key)
    if shape is not None:
        shape.check(key, record)
    return record


def _refuse(constant: str) -> None:
    """Refuse NaN and infinities, which Python reads and JSON does not have."""
    raise ValueError(f"{constant} is no number")
