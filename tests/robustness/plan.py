"""Which faults happen, how often, in which order and when: all from the seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from tests.robustness import faults
from tests.robustness.faults import Fault
from tests.robustness.rack import AGENTS

LEAST_KILLS = 5
"""So many kills of the leader alone it takes to judge the time to resume: the median of fewer is that of luck."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each fault happens; the others follow from `kills` unless they are given.

    With `cuts` each controller has a network of its own, for the whole run, and with `disks` the database a disk.
    """

    kills: int
    pauses: int
    others: int = -1
    cuts: int = 0
    disks: int = 0

    @property
    def rare(self) -> int:
        """How often each other fault happens: one for 20 kills."""
        return max(1, self.kills // 20) if self.others < 0 else self.others

    @property
    def alone(self) -> int:
        """How often the leader is killed alone where most kills take a database server along: enough to be judged."""
        return max(self.rare, min(self.kills, LEAST_KILLS))


@dataclass(frozen=True, slots=True)
class Casualties:
    """What the blow to the database and the one to the broker are called."""

    store: str
    broker: str


@dataclass(frozen=True, slots=True)
class Step:
    """One fault, `after_seconds` after the rack was whole again, with a seed of its own."""

    fault: Fault
    after_seconds: float
    seed: int


def make_plan(seed: int, counts: Counts, store: str, casualties: Casualties) -> list[Step]:
    """Return the steps of a run. On a cluster, `kills` counts the leader together with a database server."""
    rng = random.Random(f"plan-{seed}")
    store_alone, with_leader = faults.of_store(casualties.store)
    wanted: Mapping[Fault, int] = {
        faults.KILL_LEADER: counts.kills if store == "mariadb" else counts.alone,
        with_leader: counts.rare if store == "mariadb" else counts.kills,
        faults.PAUSE_LEADER: counts.pauses,
        faults.CUT_LEADER: counts.cuts,
        faults.CUT_BROKER: counts.cuts,
        faults.FILL_DISK: counts.disks,
        store_alone: counts.rare,
        faults.STOP_LEADER: counts.rare,
        faults.HAND_OVER: counts.rare,
        faults.of_broker(casualties.broker): counts.rare,
    }
    chosen = [fault for fault, count in wanted.items() for _ in range(count)]
    chosen += [faults.kill_agent(rng.choice(AGENTS)) for _ in range(counts.rare)]
    rng.shuffle(chosen)
    return [Step(fault, rng.uniform(0.0, 1.5), rng.getrandbits(32)) for fault in chosen]
