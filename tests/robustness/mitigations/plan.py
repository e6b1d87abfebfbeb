"""The plan of a run: at which step of a mitigation who is killed, all of it from the seed. Pure."""

import random
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from pondstack.domain.mitigation import MitigationMethod, MitigationState

LEAST_OF_A_STEP = 3
"""So often each step has to be met by a run of MITIGATIONS_JUDGED kills or more."""
MITIGATIONS_JUDGED = 50

_COPY, _MIGRATE = MitigationMethod.COPY, MitigationMethod.MIGRATE
_S = MitigationState


class Victim(StrEnum):
    """Who is killed, always by SIGKILL, and started again as an init system would."""

    LEADER = "leading controller"
    SOURCE_AGENT = "agent of the source"
    DESTINATION_AGENT = "agent of the destination"
    SOURCE_COMPUTE = "nova-compute of the source"
    DESTINATION_COMPUTE = "nova-compute of the destination"
    DATABASE = "database"


BY_MIGRATION = frozenset({Victim.DESTINATION_AGENT, Victim.DESTINATION_COMPUTE})
"""Victims that a copy, which stays on its host, does not have."""

COMPUTES = frozenset({Victim.SOURCE_COMPUTE, Victim.DESTINATION_COMPUTE})
"""Victims in whose migration Nova leaves something to its operator."""


class Place(StrEnum):
    """Where a server is. A fake compute has no guests: what is checked there is what all parts have on record."""

    FAKE = "fake compute"
    GUEST = "real guest"


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the ledger tells it. `asked`: Nova was asked for the live migration already.

    `guest`: mitigations of the rack's real guests come by here, whose host refuses the copy, so that they migrate.
    """

    method: MitigationMethod
    state: MitigationState
    asked: bool = False
    guest: bool = True

    @property
    def name(self) -> str:
        """What it is called in the report."""
        return f"{self.method}: {self.state}{', Nova migrates' if self.asked else ''}"

    @property
    def victims(self) -> tuple[Victim, ...]:
        """Who takes part in it."""
        return tuple(item for item in Victim if self.method is _MIGRATE or item not in BY_MIGRATION)


STEPS = (
    Step(_COPY, _S.CLAIMING),
    Step(_COPY, _S.MOVING),
    Step(_COPY, _S.REWRITING, guest=False),
    Step(_COPY, _S.RELEASING, guest=False),
    Step(_COPY, _S.UNCLAIMING, guest=False),
    Step(_COPY, _S.UNDOING),
    Step(_MIGRATE, _S.CLAIMING),
    Step(_MIGRATE, _S.MOVING),
    Step(_MIGRATE, _S.MOVING, asked=True),
    Step(_MIGRATE, _S.RELEASING),
    Step(_MIGRATE, _S.UNCLAIMING),
    Step(_MIGRATE, _S.UNDOING, guest=False),
)
"""All that a mitigation goes through before it ends."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill at a step of one mitigation.

    The step is let run for `run_seconds`, then its leader is held (SIGSTOP); the kill comes `held_seconds` later, and
    the victim is started again after `down_seconds`. `restart`: the server is stopped and started afterwards.
    """

    number: int
    step: Step
    victim: Victim
    place: Place
    run_seconds: float
    held_seconds: float
    down_seconds: float
    restart: bool


def make_plan(seed: int, count: int) -> list[Kill]:
    """Return so many kills: each step as often as any other, give or take one, and its victims in turn."""
    rng = random.Random(f"mitigations-{seed}")
    steps: list[Step] = []
    while len(steps) < count:
        steps += rng.sample(STEPS, len(STEPS))
    met: Counter[Step] = Counter()
    struck: Counter[Victim] = Counter()
    pairs: Counter[tuple[Step, Victim]] = Counter()
    plan = []
    for number, step in enumerate(steps[:count]):
        victim = min(step.victims, key=lambda item: (pairs[step, item], struck[item], rng.random()))
        # Every fourth on a real guest: it takes several times as long.
        place = Place.GUEST if step.guest and met[step] % 4 == 1 else Place.FAKE
        met[step] += 1
        struck[victim] += 1
        pairs[step, victim] += 1
        plan.append(_kill(rng, number, step, victim, place))
    return plan


def _kill(rng: random.Random, number: int, step: Step, victim: Victim, place: Place) -> Kill:
    # All other steps last for some tenths of a second: they are held as soon as they are seen.
    lasts = step.method is _MIGRATE and step.state in (_S.MOVING, _S.RELEASING)
    run_seconds = rng.uniform(0.0, 2.0) if lasts else 0.0
    return Kill(
        number,
        step,
        victim,
        place,
        round(run_seconds, 3),
        round(rng.uniform(0.0, 0.5), 3),
        round(rng.uniform(0.0, 2.0), 3),
        rng.random() < 0.3,
    )
