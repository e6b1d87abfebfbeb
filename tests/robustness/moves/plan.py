"""The plan of a run: at which step of a live migration who is killed, frozen, or gives it up, from the seed. Pure."""

import random
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

LEAST_OF_A_VICTIM = 2
"""So often each victim has to be met by a run of MOVES_JUDGED moves or more."""
MOVES_JUDGED = 20


class Victim(StrEnum):
    """Who is killed or frozen; what was killed is started again, as an init system would."""

    SOURCE_PLANE = "data plane of the source"
    DESTINATION_PLANE = "data plane of the destination"
    SOURCE_AGENT = "agent of the source"
    DESTINATION_AGENT = "agent of the destination"
    LEADER = "leading controller"
    SOURCE_COMPUTE = "nova-compute of the source"
    DESTINATION_COMPUTE = "nova-compute of the destination"
    OPERATOR = "nobody: an operator aborts it"


COMPUTES = frozenset({Victim.SOURCE_COMPUTE, Victim.DESTINATION_COMPUTE})
"""Victims in whose migration Nova leaves something to its operator."""


class Act(StrEnum):
    """What happens to the victim."""

    KILL = "kill -9"
    FREEZE = "freeze"
    ABORT = "abort"


class Step(StrEnum):
    """How far the migration is, as Nova and the data planes tell it."""

    ASKED = "Nova was asked"
    OFFERED = "the source's data plane offers the guest"
    CONNECTED = "the destination's data plane has found it"
    FETCHING = "the destination fetches its pages"


BEFORE_IT_RUNS_THERE = (Step.ASKED, Step.OFFERED, Step.CONNECTED)
"""Steps at which Nova can still abort it."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One move. At the step, `wait_seconds` later: the act; the victim is away for `away_seconds`."""

    number: int
    step: Step
    victim: Victim
    act: Act
    wait_seconds: float
    away_seconds: float


def make_plan(seed: int, count: int) -> list[Kill]:
    """Return so many moves: each victim as often as any other, give or take one, its steps and acts in turn."""
    rng = random.Random(f"moves-{seed}")
    victims: list[Victim] = []
    while len(victims) < count:
        victims += rng.sample(list(Victim), len(Victim))
    steps: Counter[tuple[Victim, Step]] = Counter()
    acts: Counter[tuple[Victim, Act]] = Counter()
    plan = []
    for number, victim in enumerate(victims[:count]):
        step = min(_steps(victim), key=lambda item: (steps[victim, item], rng.random()))
        act = min(_acts(victim), key=lambda item: (acts[victim, item], rng.random()))
        steps[victim, step] += 1
        acts[victim, act] += 1
        plan.append(_kill(rng, number, step, victim, act))
    return plan


def _steps(victim: Victim) -> tuple[Step, ...]:
    return BEFORE_IT_RUNS_THERE if victim is Victim.OPERATOR else tuple(Step)


def _acts(victim: Victim) -> tuple[Act, ...]:
    return (Act.ABORT,) if victim is Victim.OPERATOR else (Act.KILL, Act.FREEZE)


def _kill(rng: random.Random, number: int, step: Step, victim: Victim, act: Act) -> Kill:
    # Nova takes seconds until somebody offers the guest; the steps after that last for some tenths of a second.
    wait_seconds = rng.uniform(0.0, 3.0) if step is Step.ASKED else rng.uniform(0.0, 0.1)
    # Frozen: shorter and longer than the silence that data planes bear (see rack.SILENCE_SECONDS).
    away_seconds = rng.uniform(0.5, 9.0) if act is Act.FREEZE else rng.uniform(0.2, 3.0)
    return Kill(number, step, victim, act, round(wait_seconds, 3), round(away_seconds, 3))
