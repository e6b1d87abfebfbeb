"""The files of the project."""

import subprocess
from functools import cache
from pathlib import Path

from .conftest import ROOT


@cache
def tracked() -> tuple[Path, ...]:
    """Return every file that is or would be committed; in an unpacked archive without git, every one not hidden."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        names = done.stdout.decode().split("\0")
        return tuple(path for name in names if name and (path := ROOT / name).is_file())
    found = (path for path in ROOT.rglob("*") if path.is_file())
    return tuple(p for p in found if not any(n[0] == "." or n == "__pycache__" for n in p.relative_to(ROOT).parts))
