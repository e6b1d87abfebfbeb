"""`python -m tests.mutants [--workers 2] [FILE or FOLDER ...]`: plants each mutant of the list, or those of some files.

Prints for each whether its tests caught it, and the totals last. Exits 0 only when all were caught.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import chosen, problems
from tests.mutants.runner import ROOT, TestsDidNotRun, judge_all


def main(arguments: Sequence[str]) -> int:
    """Return the exit code: 1 when one was missed, 2 when that cannot be said."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="files or folders in which mutants are planted; all by default")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        wanted = chosen(MUTANTS, options.files)
        if wrong := problems(wanted, ROOT):
            print("\n".join(wrong))
            return 2
        caught = 0
        for verdict in judge_all(wanted, max(1, options.workers)):
            print(verdict, flush=True)
            caught += verdict.caught
    except (ValueError, TestsDidNotRun) as error:
        print(error)
        return 2
    missed = len(wanted) - caught
    print(f"{len(wanted)} mutants: {caught} caught, {missed} missed, in {time.monotonic() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the copies are removed
    sys.exit(main(sys.argv[1:]))
