"""`python -m tests.ci.freezer [--freeze 3] [--every 20] -- COMMAND`: runs it, and freezes all of it again and again.

So a test run lives through a machine that stands still: nothing of it runs for some seconds, and all of it goes on at
the same time. By the kernel's freezer of a control group (version 2, or 1), not by signals: tests stop and continue
processes themselves. Exits with the command's code; its last line says how often it froze.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/mounts")


class NoFreezer(RuntimeError):
    """This machine has no control group that freezes, or does not let us make one."""


@dataclass(frozen=True, slots=True)
class Group:
    """A control group: where it is, the file that freezes it, and what to write there."""

    folder: Path
    file: str
    frozen: str
    thawed: str

    def set(self, frozen: bool) -> None:
        """Freeze all of its processes, or let them go on."""
        (self.folder / self.file).write_text(self.frozen if frozen else self.thawed)


def find(mounts: str) -> Group:
    """Return where a group may be made, by the text of /proc/mounts; raises NoFreezer."""
    entries = [line.split() for line in mounts.splitlines()]
    for _, where, kind, *_ in entries:
        if kind == "cgroup2":
            return Group(Path(where), "cgroup.freeze", "1", "0")
    for _, where, kind, options, *_ in entries:
        if kind == "cgroup" and "freezer" in options.split(","):
            return Group(Path(where), "freezer.state", "FROZEN", "THAWED")
    raise NoFreezer("no control group with a freezer is mounted: mount cgroup2")


@contextlib.contextmanager
def group() -> Iterator[Group]:
    """Make a group of our own, and remove it when it is empty."""
    root = find(MOUNTS.read_text())
    mine = Group(root.folder / f"pondstack-freezer-{uuid.uuid4().hex[:8]}", root.file, root.frozen, root.thawed)
    try:
        mine.folder.mkdir()
    except OSError as error:
        raise NoFreezer(f"{mine.folder}: {error.strerror}; run it as root, outside a container") from None
    try:
        yield mine
    finally:
        mine.set(False)
        with contextlib.suppress(OSError):  # daemons that outlive the command are still in it
            mine.folder.rmdir()


def run(command: Sequence[str], freeze_seconds: float, every_seconds: float) -> tuple[int, int]:
    """Run a command; return its exit code and how often it was frozen. Raises NoFreezer."""
    with group() as mine:

        def join() -> None:
            (mine.folder / "cgroup.procs").write_text(str(os.getpid()))

        process = subprocess.Popen(command, preexec_fn=join)
        ended, frozen = threading.Event(), 0
        threading.Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
        while not ended.wait(every_seconds):
            mine.set(True)
            threading.Event().wait(freeze_seconds)
            mine.set(False)
            frozen += 1
        return process.returncode, frozen


def main(arguments: Sequence[str]) -> int:
    """Return the command's exit code, 2 when this machine cannot freeze."""
    parser = argparse.ArgumentParser(prog="python -m tests.ci.freezer", description=__doc__.split("\n\n")[0])
    parser.add_argument("--freeze", type=float, default=3.0, help="seconds that nothing runs")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two of these")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    try:
        code, frozen = run(command, options.freeze, options.every)
    except NoFreezer as error:
        print(f"cannot freeze: {error}", file=sys.stderr)
        return 2
    print(f"frozen {frozen} times for {options.freeze:g} s, every {options.every:g} s; exit {code}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
