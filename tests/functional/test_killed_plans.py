"""The leader dies at each step of a plan, over a real database: the next one ends the plan, or what it did is undone.

A step: before and after each commit, and before and after each call that changes something at Nova. By day each third
one: the simulation has them all (tests/sim/plans).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pondstack.db.connection.engine import Database
from pondstack.db.store import SQL
from pondstack.domain.host_sleep import DISABLED_REASON, SleepState
from pondstack.domain.plan import Action, ActionKind, PlanKind, PlanState
from pondstack.ledger.ledger import Ledger
from tests.fixtures import lead
from tests.fixtures.ledgers import report
from tests.fixtures.played_plans import VMS, PlayedNova, World
from tests.fixtures.schema import migrate
from tests.fixtures.seeds import by_night

S, Z = PlanState, SleepState
ROUNDS = 30
NEXT = {
    Z.DISABLING: Z.LENDING,
    Z.LENDING: Z.SUSPENDING,
    Z.SUSPENDING: Z.ASLEEP,
    Z.WAKING: Z.RECLAIMING,
    Z.RECLAIMING: Z.ENABLING,
}


class Killed(BaseException):
    """The leader dies here."""


class Steps:
    """Counts steps; the one of number `at` kills. `armed`: steps are of the leader that is tried."""

    def __init__(self, at: int) -> None:
        self._at, self.count, self.armed = at, 0, False

    def step(self) -> None:
        """Take one."""
        if self.armed:
            self.count += 1
            if self.count == self._at:
                raise Killed


class Fragile:
    """A database on which each commit is two steps."""

    def __init__(self, database: Database, steps: Steps) -> None:
        self._database, self._steps = database, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def write(self, *arguments: Any, **named: Any) -> Any:
        self._steps.step()
        answer = self._database.write(*arguments, **named)
        self._steps.step()
        return answer


class FragileNova(PlayedNova):
    """A Nova on which each change is two steps."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        for name in ("disable", "enable", "live_migrate"):
            setattr(self, name, self._two_steps(getattr(self, name), steps))

    @staticmethod
    def _two_steps(call: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
        def called(*arguments: Any) -> None:
            steps.step()
            call(*arguments)
            steps.step()

        return called


class SqlWorld(World):
    """A World whose leaders have the SQL ledger."""

    def __init__(self, database: Database, at: int) -> None:
        self._database, self.steps = database, Steps(at)
        super().__init__()
        self.nova = FragileNova(self.steps)
        self.nova.servers = {VMS[0]: self.nova.servers[VMS[0]]}
        self.ledger.hosts.heartbeat(report("a", 1, pools=[]))

    def lead(self) -> None:
        """Have another leader take over."""
        super().lead()
        self.ledger = Ledger(Fragile(self._database, self.steps), lead(self._database), store=SQL)  # type: ignore[arg-type,assignment]
        self.applier._plans = self.ledger.plans

    def live(self, rounds: int = ROUNDS) -> None:
        """Go on with rounds; a leader that dies is followed by another one. Nova and the host do their part."""
        for _ in range(rounds):
            self.steps.armed = True
            try:
                self.round()
            except Killed:
                self.lead()
            self.steps.armed = False
            self.nova.finish()
            if not self._sleep_further() and not self.ledger.plans.unattended():
                return

    def _sleep_further(self) -> bool:
        """Take the sleep of host a one state further, as its leader and its agent do; returns whether it went."""
        item = self.sleeps.newest("a")
        if item is None or not item.is_open:
            return False
        if item.state is Z.DISABLING:
            self.nova.disable(self.nova.services["a"], DISABLED_REASON)
        if item.state is Z.ENABLING:
            self.nova.enable(self.nova.services["a"])
            self.sleeps.go("a", SleepState(item.work.ending or Z.AWAKE))
        elif item.state in NEXT:
            self.sleeps.go("a", NEXT[item.state])
        return item.state is not Z.ASLEEP


DISABLE, SUSPEND = Action(1, ActionKind.DISABLE, "a", "a"), Action(9, ActionKind.SUSPEND, "a", "a")
WAKE, ENABLE = Action(1, ActionKind.WAKE, "a", "a"), Action(1, ActionKind.ENABLE, "a", "a")
MOVE = Action(2, ActionKind.MIGRATE, "a", "a", VMS[0], "b", 512)


def to_be_restored(world: SqlWorld) -> None:
    world.nova.disable(world.nova.services["a"], "pondstack plan 1")


def to_be_woken(world: SqlWorld) -> None:
    uuid = world.begin(DISABLE, SUSPEND)
    for _ in range(8):
        world.round()
        world._sleep_further()
    assert world.plan(uuid).state is S.DONE
    assert world.sleeps.newest("a").state is Z.ASLEEP


def stuck(world: SqlWorld) -> None:
    world.nova.stays = True


class Way(NamedTuple):
    """`cancelled`: after so many rounds. `enabled`, `sleep`: what becomes of host a; `moved`: its server is on b."""

    actions: tuple[Action, ...]
    ends: PlanState
    enabled: bool
    sleep: SleepState | None = None
    moved: bool = False
    kind: PlanKind = PlanKind.CONSOLIDATE
    begin: Callable[[SqlWorld], None] = lambda _world: None
    cancelled: int | None = None


ALL = (DISABLE, MOVE, SUSPEND)
WAYS = {
    "disable": Way((DISABLE,), S.DONE, enabled=False),
    "migrate": Way((MOVE,), S.DONE, enabled=True, moved=True),
    "enable": Way((ENABLE,), S.DONE, enabled=True, kind=PlanKind.RESTORE, begin=to_be_restored),
    "suspend": Way((DISABLE, SUSPEND), S.DONE, enabled=False, sleep=Z.ASLEEP),
    "wake": Way((WAKE,), S.DONE, enabled=True, sleep=Z.AWAKE, begin=to_be_woken),
    "all of a host": Way(ALL, S.DONE, enabled=False, sleep=Z.ASLEEP, moved=True),
    "a migration fails": Way(ALL, S.FAILED, enabled=True, begin=stuck),
    "cancelled at once": Way(ALL, S.CANCELLED, enabled=True, cancelled=1),
    "cancelled while it migrates": Way(ALL, S.CANCELLED, enabled=True, cancelled=2),
    "cancelled while it falls asleep": Way((DISABLE, SUSPEND), S.CANCELLED, enabled=True, cancelled=3, sleep=Z.AWAKE),
}


def run(way: Way, folder: Path, at: int) -> int:
    """Carry a plan out with a leader that dies at a step; returns how many steps there were."""
    database = Database.from_url(migrate(folder / f"{at}.db"), retry_seconds=10)
    try:
        world = SqlWorld(database, at)
        way.begin(world)
        uuid = world.begin(*way.actions, kind=way.kind)
        if way.cancelled is not None:
            world.live(way.cancelled)
            world.ledger.plans.cancel("00000000-0000-0000-0000-00000000000c", uuid)
        world.live()
        told = f"killed at step {at}: {world.plan(uuid)} {world.nova.services['a']} {world.sleeps.newest('a')}"
        check(world, way, uuid, told)
        return world.steps.count
    finally:
        database.dispose()


def check(world: SqlWorld, way: Way, uuid: str, told: str) -> None:
    plan, sleep = world.plan(uuid), world.sleeps.newest("a")
    assert plan.state is way.ends, told
    assert world.nova.services["a"].enabled is way.enabled, told
    if way.cancelled is None:
        assert (None if sleep is None else sleep.state) == way.sleep, told
    else:
        assert sleep is None or not sleep.is_open, told
    assert len(world.nova.asked) <= world.pace.tries, told
    if way.moved:
        assert world.nova.servers[VMS[0]].host == "b", told
    assert not any(state.busy for state in world.nova.servers.values()), told
    assert not any(action.state in ("pending", "running") for action in plan.actions), told


@pytest.mark.parametrize("name", WAYS)
def test_whatever_step_its_leader_dies_at_a_plan_ends(name, tmp_path):
    count = run(WAYS[name], tmp_path, 0)
    assert count >= 4, "there is something to die at"
    for at in range(1, count + 1, by_night(1, 3)):
        run(WAYS[name], tmp_path, at)
