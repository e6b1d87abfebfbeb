"""`python -m bench.agreement LOG`: compares the log of an earlier replay with the planner; it needs no rack."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.agreement import comparison
from bench.agreement.log import BadLog, Log


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when each difference has a reason, 2 for a file that is no log."""
    parser = argparse.ArgumentParser(prog="python -m bench.agreement", description=__doc__)
    parser.add_argument("log", type=Path, help="that make replay LOG=... wrote")
    try:
        return comparison.report(Log.read(parser.parse_args(arguments).log))
    except (BadLog, OSError) as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
