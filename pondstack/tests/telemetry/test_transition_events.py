"""Notifications of plans and of hosts' sleeps: what goes over the bus is what the samples of the documentation show."""

import json
from dataclasses import replace

import pytest

from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.plan import Action, ActionKind, ActionState, Afterwards, Plan, PlanKind, PlanState, PlanTrigger
from pondstack.telemetry.transition_events import TransitionEvent, Transitions

from .test_versioned import SAMPLES, bus

__all__ = ["bus"]

VM = "0635cccd-1e78-5473-b66a-bacffc433357"
ACTIONS = (
    Action(1, ActionKind.DISABLE, "host-1", "host-1", state=ActionState.DONE),
    Action(2, ActionKind.MIGRATE, "host-1", "host-1", VM, "host-2", 4096),
    Action(3, ActionKind.SUSPEND, "host-1", "host-1"),
)
PLAN = Plan(
    "5977e649-2419-5413-b71e-85fcd2bd69d3",
    PlanKind.CONSOLIDATE,
    PlanTrigger.OPERATOR,
    PlanState.RUNNING,
    ACTIONS,
    afterwards=Afterwards.SUSPEND,
    created_at=1795280400.0,
)
FAILED = "2 of 3 actions failed, for host-1: Nova did not move it"
SLEEP = HostSleep("9c4e6f0d-5a58-4f5e-9c1d-8a3e7f115b9b", "host-1", "lowpower-s0", created_at=1795280400.0)


def moved(state: ActionState) -> tuple[Action, ...]:
    return (ACTIONS[0], replace(ACTIONS[1], state=state), ACTIONS[2])


EVENTS = {
    "plan-start": PLAN,
    "plan-end": replace(PLAN, state=PlanState.DONE, actions=moved(ActionState.DONE), ended_at=1795280490.0),
    "plan-error": replace(
        PLAN, state=PlanState.FAILED, actions=moved(ActionState.FAILED), ended_at=1795280490.0, reason=FAILED
    ),
    "host_sleep-start": SLEEP,
    "host_sleep-asleep": replace(SLEEP, state=SleepState.ASLEEP, lent_mib=65536),
    "host_sleep-lost": replace(
        SLEEP,
        state=SleepState.LOST,
        lent_mib=65536,
        reason="it does not serve any more: host-2 has lost it, and its waker does not answer",
    ),
    "host_sleep-end": replace(SLEEP, state=SleepState.AWAKE, ended_at=1795284000.0),
    "host_sleep-error": replace(
        SLEEP,
        state=SleepState.FAILED,
        ended_at=1795280700.0,
        reason="it did not fall asleep by lowpower-s0 within 120 s",
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_the_sample_is_what_is_sent(bus, name):
    conf, taken = bus()
    tell = Transitions(conf, "controller-1")
    tell(TransitionEvent(EVENTS[name], name.rpartition("-")[2]))
    assert taken.get(timeout=30) == json.loads((SAMPLES / f"{name}.json").read_text())
    tell.close()
