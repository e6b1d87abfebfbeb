"""Servers for which Nova found no host, while hosts sleep on which they would fit: each is told of once.

Zombieland, EuroSys'18, section 5.2: a zombie is woken where nothing else fits. Nova's notifications are hints only:
what there is, its API says. For which servers plans were made, the ledger says, to the next leader as well.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pondstack.clients.nova import Nova
from pondstack.clients.servers import UnplacedServer
from pondstack.consolidation.decision.snapshot import VmView
from pondstack.domain.host_sleep import SleepState
from pondstack.domain.plan import PlanState
from pondstack.ledger.host_sleeps import HostSleeps
from pondstack.ledger.plans import Plans

MOST = 1000
"""So many servers a plan is made for at most; the others have the next one."""
NAMED = 3
"""So many flavors its reason names."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`look_seconds`: between two looks without a hint, 0: none; `within_seconds`: for so long a failure counts."""

    look_seconds: float
    within_seconds: float


class Unplaced:
    """Those of one leader. hint() is thread-safe; the rest is for one thread."""

    def __init__(
        self,
        nova: Nova,
        plans: Plans,
        sleeps: HostSleeps,
        pace: Callable[[], Pace],
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._nova, self._plans, self._sleeps = nova, plans, sleeps
        self._pace, self._clock, self._now = pace, clock, now
        self._look_at = 0.0
        self._hinted = False

    def hint(self) -> None:
        """Have the next look come at once."""
        self._hinted = True

    @property
    def is_due(self) -> bool:
        """Whether it is time for a look."""
        seconds = self._pace().look_seconds
        return seconds > 0 and (self._hinted or self._clock() >= self._look_at)

    def new(self) -> list[UnplacedServer]:
        """Look, and return those for which no plan was made yet. Raises Unavailable.

        None while nobody sleeps, while a plan for others is under way, and while one that is proposed may be applied.
        """
        pace = self._pace()
        self._hinted, self._look_at = False, self._clock() + pace.look_seconds
        if not any(sleep.state is SleepState.ASLEEP for sleep in self._sleeps.unended()):
            return []
        recent = [plan for plan in self._plans.recent(2 * pace.within_seconds) if plan.unplaced]
        if any(plan.is_open and _stands(plan.state, plan.age_seconds, pace) for plan in recent):
            return []
        known = {str(item["uuid"]) for plan in recent for item in plan.unplaced}
        found = self._nova.unplaced(self._now() - timedelta(seconds=pace.within_seconds))
        return sorted((item for item in found if item.uuid not in known), key=lambda item: item.uuid)[:MOST]


def _stands(state: PlanState, age_seconds: float, pace: Pace) -> bool:
    return state is not PlanState.PROPOSED or age_seconds <= pace.within_seconds


def cause(servers: Sequence[UnplacedServer]) -> str:
    """Return why hosts are to be woken: which flavors of which projects found none, the most frequent first."""
    counts = Counter((item.flavor_name, item.project_id) for item in servers).most_common()
    named = [f"{flavor} of project {project} ({count})" for (flavor, project), count in counts[:NAMED]]
    more = f", and {len(counts) - NAMED} more" if len(counts) > NAMED else ""
    return f"scheduling failed for flavor {', '.join(named)}{more}"


def record(server: UnplacedServer) -> dict[str, Any]:
    """Return what a plan keeps of one."""
    traits = None if server.traits is None else list(server.traits)
    return {"uuid": server.uuid, "flavor": server.flavor_name, "claim": dict(server.claim), "traits": traits}


def view(kept: Mapping[str, Any]) -> VmView:
    """Return one as a decision takes it."""
    claim, traits = kept["claim"], kept["traits"]
    return VmView(
        str(kept["uuid"]), "", claim.get("MEMORY_MB", 0), claim, traits=None if traits is None else tuple(traits)
    )
