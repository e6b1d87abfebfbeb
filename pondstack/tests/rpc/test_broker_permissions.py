"""What users of the broker may do: their own queues by whole names, and the calls of the table of callers."""

import re

import pytest

from pondstack.rpc.broker_permissions import PROCESSES, Permissions, permissions_of
from pondstack.rpc.identity import callers
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.targets import AGENT_TOPIC, CONTROLLER_TOPIC, NODE_TOPIC, WAKER_TOPIC


def of(*parties: str) -> Permissions:
    return permissions_of(Identity.parse(party) for party in parties)


def matching(pattern: str, *names: str) -> set[str]:
    return {name for name in names if re.search(pattern, name)}


QUEUES_OF_H1 = (
    "pondstack-agent",
    "pondstack-agent.h1",
    "pondstack-agent_fanout_h1:pondstack-agent:1",
    "reply_h1:pondstack-agent:12",
)
QUEUES_OF_OTHERS = (
    "pondstack-agent.h2",
    "pondstack-agent.h11",
    "pondstack-agent.h1.x",
    "pondstack-agent_fanout_h2:pondstack-agent:1",
    "pondstack-controller",
    "pondstack-node.c1",
    "reply_h2:pondstack-agent:1",
    "reply_h1:nova-compute:1",
    "reply_xh1:pondstack-agent:1",
    "reply_0123456789abcdef",
    "amq.default",
)


def test_an_agents_queues_are_its_own() -> None:
    found = of("agent/h1")
    for pattern in (found.configure, found.read):
        assert matching(pattern, *QUEUES_OF_H1, *QUEUES_OF_OTHERS) == set(QUEUES_OF_H1)
    assert matching(found.write, *QUEUES_OF_H1, *QUEUES_OF_OTHERS) == {*QUEUES_OF_H1[:3], "amq.default"}
    assert matching(found.topic_read, *QUEUES_OF_H1, *QUEUES_OF_OTHERS) == set(QUEUES_OF_H1[:2])


def test_who_only_calls_answers_nobody_and_hears_answers_only() -> None:
    for role in (Role.API, Role.COMPUTE, Role.SCHEDULER):
        found = of(f"{role}/h1")
        own = f"reply_h1:{PROCESSES[role]}:3"
        others = [name for name in QUEUES_OF_OTHERS if PROCESSES[role] not in name]
        assert matching(found.read, own, "pondstack", *others) == {own}
        assert matching(found.write, "pondstack", own, *QUEUES_OF_H1, *QUEUES_OF_OTHERS) == {"pondstack"}
        assert not matching(found.topic_read, *QUEUES_OF_H1, *QUEUES_OF_OTHERS, "#")


KEYS = {
    AGENT_TOPIC: "pondstack-agent.h7",
    CONTROLLER_TOPIC: "pondstack-controller",
    NODE_TOPIC: "pondstack-node.c1",
    WAKER_TOPIC: "pondstack-waker.h7",
}


@pytest.mark.parametrize("role", list(Role))
def test_calls_go_to_those_whom_the_role_may_call(role: Role) -> None:
    may = {KEYS[topic] for topic, verbs in callers.TABLE.items() if any(role in rule.roles for rule in verbs.values())}
    assert may
    assert matching(of(f"{role}/h1").topic_write, *KEYS.values(), "pondstack-agent", "x") == may


def test_a_users_parties_add_up() -> None:
    host, agent, compute = of("agent/h1", "compute/h1"), of("agent/h1"), of("compute/h1")
    names = (*QUEUES_OF_H1, *QUEUES_OF_OTHERS, *KEYS.values(), "pondstack")
    for kind in ("configure", "write", "read", "topic_write", "topic_read"):
        both = matching(getattr(agent, kind), *names) | matching(getattr(compute, kind), *names)
        assert matching(getattr(host, kind), *names) == both, kind


def test_a_dot_in_a_name_is_a_dot() -> None:
    found = of("agent/h1.example")
    assert matching(found.configure, "pondstack-agent.h1.example", "pondstack-agent.h1xexample") == {
        "pondstack-agent.h1.example"
    }


def test_several_racks_on_a_machine_count_apart() -> None:
    found = of("compute/h1")
    assert matching(found.read, "reply_h1:nova-compute.21000:1", "reply_h1:nova-compute.a:b:1") == {
        "reply_h1:nova-compute.21000:1"
    }
