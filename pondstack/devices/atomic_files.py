"""Small files that survive a crash: the old content or the new one, never a part. Standard library only."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def temporary_json(folder: Path, data: Any) -> Iterator[str]:
    """Write a JSON file to disk under a name of its own, for as long as the block lasts or until it is renamed."""
    handle, temporary = tempfile.mkstemp(prefix=".", dir=folder)
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(data, file, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def write_json(path: Path, data: Any) -> None:
    """Replace a JSON file atomically: after a crash there is the old content or the new, on disk."""
    with temporary_json(path.parent, data) as temporary:
        os.replace(temporary, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and removals in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
