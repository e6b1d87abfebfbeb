"""Draws histories in which guests move live, often, and take their slices along."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from tests.sim import plan
from tests.sim.plan import SECONDS, History, Step

CACHES_SHARE = 0.5
"""In how many histories hosts do not see each other's CPU caches."""
CUT_SHARE = 0.5
"""Of the moves in these, how many have a host lose power while slices change their host."""
MOST_MOVES = 3
"""Of one guest, beside what it does else."""


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed, as tests.sim.plan.draw."""
    drawn, rng = plan.draw(seed, only=only), Random(f"heirs {seed}")
    guests = sorted({step.target for step in drawn.operations if step.kind == "boot"})
    moves = [_move(rng, guest, drawn.hosts) for guest in guests for _ in range(rng.randint(0, MOST_MOVES))]
    steps = tuple(sorted((*drawn.operations, *moves), key=lambda step: step.at))
    found = replace(drawn, operations=steps, hands_over=True)
    rng = Random(f"caches {seed}")
    if rng.random() >= CACHES_SHARE:
        return found
    faults = (*drawn.faults, *_cuts(rng, steps, drawn.hosts))
    return replace(found, caches=True, faults=tuple(sorted(faults, key=lambda step: step.at)))


def _move(rng: Random, guest: str, hosts: tuple[str, ...]) -> Step:
    values = {"host": rng.choice(hosts), "seconds": rng.uniform(0.1, 4.0)}
    return Step(rng.uniform(2.0, SECONDS), "migrate", guest, values)


def _cuts(rng: Random, steps: Sequence[Step], hosts: tuple[str, ...]) -> Iterator[Step]:
    """Draw hosts that need long to write caches back, and lose power meanwhile, if the guest is where it should."""
    yield from (plan.slow_host(rng, 0.5, (host,)) for host in hosts)
    place: dict[str, str] = {}
    for step in steps:
        if step.kind == "migrate" and step.target in place and rng.random() < CUT_SHARE:
            at = step.at + step.values["seconds"] + rng.uniform(0.0, 2.0)
            yield Step(at, "host_death", place[step.target], {"seconds": rng.choice((1.0, 5.0, 10.0))})
        if step.kind in ("boot", "migrate"):
            place[step.target] = step.values["host"]
