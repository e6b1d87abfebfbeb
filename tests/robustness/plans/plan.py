"""The plan of a run: at which step of a consolidation plan who is killed, from the seed. Pure."""

import random
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from pondstack.domain.host_sleep import SleepState
from pondstack.domain.plan import ActionKind


class Way(StrEnum):
    """What the consolidation plan does."""

    DOWN = "down"
    """A host is emptied by a live migration, lends its memory, and sleeps."""
    UP = "up"
    """It is woken, has its memory back, and takes the server again."""


class Victim(StrEnum):
    """Who is killed, always by SIGKILL, and started again as an init system would."""

    LEADER = "leading controller"
    SLEEPER_AGENT = "agent of the host that sleeps"
    OTHER_AGENT = "agent of the other host"
    SLEEPER_COMPUTE = "nova-compute of the host that sleeps"
    OTHER_COMPUTE = "nova-compute of the other host"
    OPERATOR = "nobody: an operator cancels it"


COMPUTES = frozenset({Victim.SLEEPER_COMPUTE, Victim.OTHER_COMPUTE})
"""Victims in whose migration Nova leaves something to its operator."""
OF_THE_SLEEPER = frozenset({Victim.SLEEPER_AGENT, Victim.SLEEPER_COMPUTE})
"""Victims that stand still while their host sleeps: a host that sleeps runs nothing that could die."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far a plan is, as the ledger has it. `kind` None: it is being decided; `sleep`: of its host's sleep."""

    way: Way
    kind: ActionKind | None
    sleep: SleepState | None = None

    @property
    def name(self) -> str:
        """What it is called in the report."""
        return f"{self.way}: {self.kind or 'deciding'}{f', {self.sleep}' if self.sleep else ''}"

    @property
    def victims(self) -> tuple[Victim, ...]:
        """Who takes part in it: a plan is decided by the leader alone; what is just falling asleep cannot die."""
        if self.kind is None:
            return (Victim.LEADER,)
        sleeps = self.sleep is SleepState.SUSPENDING
        return tuple(item for item in Victim if not (sleeps and item in OF_THE_SLEEPER))


_A, _S = ActionKind, SleepState
STEPS = (
    Step(Way.DOWN, None),
    Step(Way.DOWN, _A.DISABLE),
    Step(Way.DOWN, _A.MIGRATE),
    Step(Way.DOWN, _A.SUSPEND, _S.DISABLING),
    Step(Way.DOWN, _A.SUSPEND, _S.LENDING),
    Step(Way.DOWN, _A.SUSPEND, _S.SUSPENDING),
    Step(Way.UP, _A.WAKE, _S.WAKING),
    Step(Way.UP, _A.WAKE, _S.RECLAIMING),
    Step(Way.UP, _A.WAKE, _S.ENABLING),
    Step(Way.UP, _A.MIGRATE),
)
"""All that a plan goes through which empties a host and has it sleep, and one which wakes it for a server."""
EACH = {way: [(step, victim) for step in STEPS if step.way is way for victim in step.victims] for way in Way}
PLANS_JUDGED = 2 * max(map(len, EACH.values()))
"""A run of so many plans or more has to meet each step with the death of each victim."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One plan with a death. `run_seconds`: so long the step runs before; `down_seconds`: until who died is back."""

    number: int
    step: Step
    victim: Victim
    run_seconds: float
    down_seconds: float


def make_plan(seed: int, count: int) -> list[Kill]:
    """Return so many, down and up in turn: each step with each victim as often as any other, give or take one."""
    rng = random.Random(f"plans-{seed}")
    met: Counter[tuple[Step, Victim]] = Counter()
    plan = []
    for number in range(count):
        way = list(Way)[number % len(Way)]
        step, victim = min(EACH[way], key=lambda pair: (met[pair], rng.random()))
        met[step, victim] += 1
        run_seconds = rng.uniform(0.0, 3.0) if step.kind is ActionKind.MIGRATE else 0.0
        plan.append(Kill(number, step, victim, round(run_seconds, 3), round(rng.uniform(0.1, 2.0), 3)))
    return plan
