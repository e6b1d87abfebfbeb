"""Folders and files that are nobody else's. Standard library only."""

import stat
from pathlib import Path

_OTHERS = stat.S_IRWXO


def private_folder(folder: Path) -> None:
    """Make a folder for its user only; one that is there loses all rights of others.

    Raises OSError. What a group was given on purpose stays.
    """
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    close(folder)


def close(path: Path) -> None:
    """Take the rights of others than owner and group from a file or folder; raises OSError when it is not ours."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & _OTHERS:
        path.chmod(mode & ~_OTHERS)
