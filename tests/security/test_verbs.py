"""Every verb of every endpoint has its legal callers, and everybody else is refused: generated from the endpoints."""

import inspect
from typing import Any

import pytest

from pondstack.domain.errors import Refused
from pondstack.rpc.identity.callers import ANY, OFFER_RDMA, RECEIVER, TABLE, check
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.targets import AGENT_TOPIC, CONTROLLER_TOPIC, WAKER_TOPIC
from tests.security.verbs import endpoints, verbs

VICTIM, ATTACKER = "h1", "h2"


VERBS = verbs()
IN_TABLE = {(topic, verb) for topic, rules in TABLE.items() for verb in rules}


def test_the_endpoints_are_found() -> None:
    assert len(endpoints()) >= 14
    assert (CONTROLLER_TOPIC, "release") in VERBS
    assert (AGENT_TOPIC, "alloc_ext") in VERBS


def test_each_verb_has_its_callers_and_none_is_in_the_table_that_is_no_verb() -> None:
    """A new RPC without a rule fails here."""
    of_the_driver = {(topic, OFFER_RDMA) for topic in (AGENT_TOPIC, CONTROLLER_TOPIC, WAKER_TOPIC)}
    assert set(VERBS) | of_the_driver == IN_TABLE


def test_each_verb_has_one_endpoint() -> None:
    """oslo.messaging calls the first one whose version suffices, whatever arguments the others would take."""
    names = [
        (topic, name)
        for kind, topic in endpoints().items()
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    ]
    assert sorted(names) == sorted(set(names))


def arguments(path: str, name: str) -> dict[str, Any]:
    """Return arguments that speak for somebody at a path of the table."""
    value: Any = name
    for word in reversed(path.split(".")):
        value = {word: value}
    return dict(value)


@pytest.mark.parametrize(("topic", "verb"), sorted(IN_TABLE))
@pytest.mark.parametrize("role", list(Role))
def test_everybody_else_is_refused(topic: str, verb: str, role: Role) -> None:
    """A party of host h2 calls each verb of h1, or in its name; who may, may in the own name only."""
    attacker, victim = Identity(role, ATTACKER), Identity(role, VICTIM)
    rule = TABLE[topic][verb].roles.get(role)
    spoken = {} if rule in (None, ANY, RECEIVER) else arguments(str(rule), VICTIM)
    if rule is None:
        with pytest.raises(Refused, match="only"):
            check(topic, VICTIM, verb, victim, spoken)
    else:
        check(topic, VICTIM, verb, victim, spoken)
    if rule != ANY:
        with pytest.raises(Refused, match=ATTACKER):
            check(topic, VICTIM, verb, attacker, spoken)


@pytest.mark.parametrize(("topic", "verb"), sorted(IN_TABLE))
def test_a_host_is_not_named_by_something_else(topic: str, verb: str) -> None:
    """What stands where the host's name should be is neither its name nor an error of ours."""
    for role, rule in TABLE[topic][verb].roles.items():
        if rule not in (ANY, RECEIVER):
            for wrong in (None, 1, [VICTIM], {"name": VICTIM}, f"{VICTIM} ", VICTIM.upper()):
                with pytest.raises(Refused):
                    check(topic, VICTIM, verb, Identity(role, VICTIM), arguments(rule, wrong))  # type: ignore[arg-type]
            with pytest.raises(Refused):
                check(topic, VICTIM, verb, Identity(role, VICTIM), {})


@pytest.mark.parametrize("verb", ["", "__init__", "target", "gate", None, 1, ["release"]])
def test_what_is_no_verb_is_nobodys(verb: Any) -> None:
    for topic in (*TABLE, "pondstack-nowhere"):
        for role in Role:
            with pytest.raises(Refused, match="nobody may call"):
                check(topic, VICTIM, verb, Identity(role, VICTIM), {})


def test_hosts_that_speak_for_themselves_say_who_they_are_where_the_endpoint_reads_it() -> None:
    """The argument that the rule looks at is one that the endpoint takes."""
    for topic, rules in TABLE.items():
        for verb, callers in rules.items():
            for rule in callers.roles.values():
                if rule not in (ANY, RECEIVER):
                    taken = inspect.signature(VERBS[topic, verb]).parameters
                    keywords = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in taken.values())
                    assert rule.split(".")[0] in taken or keywords, (topic, verb)
