"""Runs Tempest against the rack: our plugin and the stock tests of compute."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pondstack_rack import config
from pondstack_rack.layout import RackError, program
from pondstack_rack.processes import environment
from pondstack_rack.rack import Rack
from pondstack_rack.tempest import conf
from pondstack_rack.tempest import results as tempest_results
from pondstack_rack.tempest.conf import Pass
from pondstack_rack.tempest.results import Results

EXCLUDED = "tempest-exclude.txt"
"""Stock tests that cannot pass on a rack, each with its reason."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What of it runs: passes by name (empty: all), tests by a regular expression, how many at a time.

    `flavors`: of the stock tests, a key of conf.FLAVORS; our own plugin brings its flavors, and runs with plain ones.
    """

    passes: Sequence[str] = ()
    regex: str = ""
    concurrency: int = 2
    flavors: str = "plain"


def run(rack: Rack, choice: Choice, say: Callable[[str], None]) -> Results:
    """Run the chosen passes one after the other; one of whose tests none matches the expression is left out.

    RackError when all are, or when one ran no test for another reason.
    """
    known = {one.name: one for one in conf.passes(rack.layout) if choice.flavors == "plain" or one.stock}
    if unknown := set(choice.passes) - known.keys():
        raise RackError(f"this rack has no pass {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    results, names = Results(), choice.passes or tuple(known)
    for name in names:
        say(f"tempest: {name}")
        found = _run_one(rack, known[name], choice)
        say(f"{name}: {found.summary()[-1] if found else f'no test of it matches {choice.regex}'}")
        if found:
            results.add(found, name)
    if not results.outcomes:
        raise RackError(f"tempest ran no test of {', '.join(names)}: none matches {choice.regex}")
    return results


def _run_one(rack: Rack, one: Pass, choice: Choice) -> Results | None:
    """Run a pass; None when there is a regular expression that none of its tests matches."""
    folder = conf.workspace(rack.layout, rack.connection(), one, choice.flavors)
    tests = folder / "tests.txt"
    tests.write_text(one.tests.rstrip("\n") + "\n")
    argv = [program("tempest"), "run", "--config-file", str(folder / "tempest.conf"), "--include-list", str(tests)]
    argv += ["--concurrency", str(choice.concurrency)]
    excluded = folder / "exclude.txt"
    excluded.write_text(config.template(EXCLUDED))
    argv += ["--exclude-list", str(excluded)]
    if choice.regex:
        # With a list, --regex would widen the choice; what it does not match is left out instead.
        argv += ["--exclude-regex", f"^(?!.*(?:{choice.regex}))"]
    before = _last(folder)
    subprocess.run(argv, cwd=folder, env=environment(), check=False, stdin=subprocess.DEVNULL)
    stream = _last(folder)
    results = tempest_results.parse(stream)
    results.leave_out(tests.read_text(), excluded.read_text())
    if stream == before or not results.outcomes:
        if choice.regex and _is_of_nothing(argv, folder):
            return None
        raise RackError(f"tempest ran no test of {one.name}: see above, and {rack.layout.log}/tempest.log")
    return results


def _is_of_nothing(argv: Sequence[str], folder: Path) -> bool:
    """Return whether these arguments choose no test: if they choose some, and none ran, something is broken."""
    listed = subprocess.run(
        [*argv, "--list-tests"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return listed.returncode == 0 and not listed.stdout.strip()


def _last(folder: Path) -> bytes:
    """Return the subunit stream of the last run in a workspace; nothing before the first one."""
    if not (folder / ".stestr").exists():
        return b""
    argv = [program("stestr"), "last", "--subunit"]
    return subprocess.run(argv, cwd=folder, env=environment(), capture_output=True, check=False).stdout
