"""The figures of a run, and whether its targets hold."""

import statistics

from tests.robustness.extension.faults import KINDS
from tests.robustness.extension.rack import LOCAL_MIB, RAM_MIB, WORDS_MIB
from tests.robustness.extension.run import Result

LEAST_MISSING = 0.3
"""So many of the guest's accesses must be to pages that are not resident; below, nothing was tortured."""


def missing_share(result: Result) -> float:
    """Return how many of the guest's accesses were to pages that had been evicted."""
    return result.pages.asked / max(result.counts.get("accesses", 0), 1)


def missed(result: Result) -> list[str]:
    """Return which targets do not hold."""
    steps = result.options.steps
    planned = {kind: sum(step.kind == kind for step in steps) for kind in KINDS}
    happened = {kind: sum(event.kind == kind for event in result.events) for kind in KINDS}
    targets = {
        "wrong words": result.counts.get("wrong", 1) == 0,
        "accesses to pages that were not resident": missing_share(result) >= LEAST_MISSING,
        "events of each kind": happened == planned and all(happened.values()),
        "agreement": not result.disagreements,
        "all given back": not result.leftovers,
    }
    return [name for name, holds in targets.items() if not holds]


def text(result: Result) -> str:
    """Return the figures."""
    counts, pages = result.counts, result.pages
    lines = [
        f"a guest of QEMU, without KVM, of {RAM_MIB} MiB, {LOCAL_MIB} MiB of them local; it verifies {WORDS_MIB} MiB",
        f"{len(result.events)} events in {result.seconds / 60:.1f} minutes, and how long until an evicted page came:",
        *(_row(kind, [event.seconds for event in result.events if event.kind == kind]) for kind in KINDS),
        f"ledger, agent and data plane: {_told(result.disagreements, 'they agree')}",
        f"after the guest's end: {_told(result.leftovers, 'all is given back, and none of it is left')}",
        f"{pages.came} pages came, {pages.lenders / max(pages.came, 1):.0%} of them from lenders, the others from the "
        "mirror",
        f"{counts['accesses']} accesses, {missing_share(result):.0%} of them to pages that were not resident "
        f"(least {LEAST_MISSING:.0%}): {'ok' if missing_share(result) >= LEAST_MISSING else 'MISSED'}",
        f"{counts['wrong']} wrong words (target 0): {'ok' if counts['wrong'] == 0 else 'MISSED'}",
        f"the same again: {result.options.command}",
    ]
    return "\n".join(lines)


def _row(kind: str, seconds: list[float]) -> str:
    if not seconds:
        return f"  {kind:38}  never: MISSED"
    return (
        f"  {kind:38} {len(seconds):3} times  median {statistics.median(seconds):4.1f} s, worst {max(seconds):4.1f} s"
    )


def _told(found: list[str], good: str) -> str:
    return f"MISSED: {'; '.join(found)}" if found else f"{good}: ok"
