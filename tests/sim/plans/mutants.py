"""Deliberately broken variants of sleeps and plans. Each must be caught."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from pondstack.consolidation.applier.actions import Disable
from pondstack.consolidation.applier.applier import Applier
from pondstack.controller.consolidation.build import Consolidation
from pondstack.controller.sleep import keeper
from pondstack.controller.sleep.actor import Actor
from pondstack.controller.sleep.build import HostSleeps
from pondstack.controller.sleep.observer import Observer
from pondstack.controller.sleep.service_guard import ServiceGuard
from pondstack.domain import host_sleep_step
from pondstack.domain.host_sleep import SleepState
from pondstack.domain.host_sleep_step import Act, PowerWord, Step
from pondstack.domain.plan import ActionState, PlanKind
from pondstack.ledger.plans import Plans
from tests.sim.mutant import Mutant, lister

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


def _decided(change: Any) -> Any:
    """Have each decision of a sleep be what `change` makes of it."""
    plain = host_sleep_step.decide
    return mock.patch.object(keeper, "decide", lambda item, seen, limits: change(plain(item, seen, limits), item, seen))


@mutant()
def two_plans_on_a_host() -> Iterator[None]:
    """A plan is applied to a host on which another one works."""
    with mock.patch.object(Plans, "_check_hosts", return_value=None):
        yield


@mutant()
def servers_are_overlooked() -> Iterator[None]:
    """A host sleeps with the servers that it has."""
    with mock.patch.object(Observer, "servers", return_value=()):
        yield


@mutant()
def stays_disabled() -> Iterator[None]:
    """A host that is awake again is not enabled, nor looked for afterwards."""
    with _decided(
        lambda step, item, _seen: (
            Step(Act.WAIT, SleepState(item.work.ending or SleepState.AWAKE)) if step.act is Act.ENABLE else step
        )
    ):
        with mock.patch.object(ServiceGuard, "_look"):
            yield


@mutant()
def revert_forgets_the_service() -> Iterator[None]:
    """What a plan that fails or is cancelled had disabled stays so."""
    with mock.patch.object(Disable, "revert", return_value=False):
        yield


@mutant()
def the_hour_is_forgotten() -> Iterator[None]:
    """Nobody counts the migrations of the last hour."""
    with mock.patch.object(Plans, "begun", return_value=0):
        yield


@mutant("nova_lossy", "compute_crash")
def tries_count_once() -> Iterator[None]:
    """A migration that is tried again is not counted again."""
    from tests.fixtures.memory import plans as rows

    def begun(tx: Any, kind: str, seconds: float) -> int:
        del seconds
        plans = [tx.tables.plans.get(uuid) for uuid, _ in tx.tables.begun_actions]
        found = {plan.uuid: plan for plan in plans if plan is not None and plan.kind is PlanKind.CONSOLIDATE}
        return sum(item.kind == kind and item.tries > 0 for plan in found.values() for item in plan.actions)

    with mock.patch.object(rows, "begun", begun):
        yield


@mutant()
def cancel_waits_for_nothing() -> Iterator[None]:
    """A plan that is cancelled ends before what it has under way does."""
    plain = Applier._undo

    def undo(self: Any, plan: Any) -> None:
        for action in plan.actions:
            if action.state is ActionState.RUNNING:
                self._note(plan, action, ActionState.SKIPPED, plan.reason)
        plain(self, self._plans.get(plan.uuid))

    with mock.patch.object(Applier, "_undo", undo):
        yield


def _state_decided(state: SleepState, change: Any) -> Any:
    """Have what a sleep in a state does next be decided by what `change` makes of what is seen."""
    plain = host_sleep_step._DECISIONS[state]
    decisions = {state: lambda item, seen, limits: plain(item, change(seen), limits)}
    return mock.patch.object(host_sleep_step, "_DECISIONS", {**host_sleep_step._DECISIONS, **decisions})


@mutant()
def lends_while_enabled() -> Iterator[None]:
    """Nova is not told that a host lends and sleeps."""
    with _decided(lambda step, _item, _seen: Step(Act.WAIT, SleepState.LENDING) if step.act is Act.DISABLE else step):
        with _state_decided(SleepState.LENDING, lambda seen: replace(seen, service=None)):
            yield


@mutant()
def enabled_before_awake() -> Iterator[None]:
    """A host that was called counts as awake, and is not asked to refuse its order to sleep."""
    with (
        _state_decided(SleepState.WAKING, lambda seen: replace(seen, power=PowerWord("woken"))),
        mock.patch.dict(Actor._work, {Act.END: Actor._wait}),
    ):
        yield


@mutant()
def revert_enables_for_whomever() -> Iterator[None]:
    """What a plan takes back is enabled, whoever has disabled it since: a host that sleeps by then, too."""

    def revert(self: Any, _plan: Any, action: Any) -> bool:
        self._nova.enable(self._service(action.host))
        return True

    with mock.patch.object(Disable, "revert", revert):
        yield


@mutant("crash")
def next_leader_leaves_plans_alone() -> Iterator[None]:
    """A leader goes on with plans only once somebody asks for one."""
    plain = Consolidation.start

    def start(self: Any) -> None:
        self._looks = False
        plain(self)

    with mock.patch.object(Consolidation, "start", start):
        yield


@mutant("crash")
def next_leader_leaves_sleeps_alone() -> Iterator[None]:
    """A leader goes on with sleeps only once somebody asks for one."""
    plain = HostSleeps.start

    def start(self: Any) -> None:
        self._looks = False
        plain(self)

    with mock.patch.object(HostSleeps, "start", start):
        yield
