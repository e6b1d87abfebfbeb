"""`python -m tests.devstack`: runs the plugin's tests, breaks it line by line, and prints the figures last.

`--write` writes the stories down anew instead: read what git then shows as changed.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.devstack.harness import HERE, Sandbox, expected, story
from tests.devstack.mutants import mutants, survivors
from tests.devstack.scenarios import SCENARIOS


def write() -> None:
    """Write down what each scenario does now."""
    with tempfile.TemporaryDirectory(prefix="pond-devstack-") as folder:
        settings = Sandbox(Path(folder) / "settings", SCENARIOS[0]).run("settings")
        (HERE / "expected" / "settings").write_text(settings)
        for scenario in SCENARIOS:
            expected(scenario).write_text(story(scenario, Path(folder) / scenario.name))


def main() -> int:
    """Return 0 only when all tests pass and every broken line is noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.devstack", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the stories down anew")
    if parser.parse_args().write:
        write()
        return 0
    begun = time.monotonic()
    failed = pytest.main(["-q", "-p", "no:cacheprovider", str(HERE)])
    broken = list(mutants())
    alive = survivors(broken)
    for mutant in alive:
        print(f"nobody notices without {mutant}")
    print(
        f"devstack-check: {'FAILED' if failed or alive else 'passed'}: {len(SCENARIOS)} nodes, tests "
        f"{'failed' if failed else 'passed'}, {len(broken) - len(alive)} of {len(broken)} broken lines noticed, "
        f"{time.monotonic() - begun:.0f} s"
    )
    return 1 if failed or alive else 0


if __name__ == "__main__":
    sys.exit(main())
