"""The virt driver's calls of the agent: retries, bounds in time, undoing, words."""

import re
from typing import Any

import oslo_messaging
import pytest
from nova import exception
from oslo_config import cfg

from nova_plugins.tests.compute.refusals import refused
from pondstack.domain import errors
from pondstack_nova.compute import agent_client
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable
from pondstack_nova.compute.claims import PoolClaim
from tests.fixtures.fake_agents import FakeAgents

CLAIM = PoolClaim(("pool-a",), 1024)
SILENCE = oslo_messaging.MessagingTimeout


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def agents() -> FakeAgents:
    return FakeAgents()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def pool(agents: FakeAgents, time: Time) -> PoolAttachments:
    return PoolAttachments(lambda: agents, clock=time.clock, sleep=time.sleep)


def _attach(pool: PoolAttachments, claim: PoolClaim = CLAIM) -> Any:
    return pool.attach("h1", "vm", claim, guest_mib=4096, project_id="p", user_id="u", shape=None)


def test_attach_hands_on_all_that_the_controller_wants_to_know(pool: PoolAttachments, agents: FakeAgents) -> None:
    assert _attach(pool).pool_mib == 1024
    (wish,) = agents.attaches
    assert wish["operation_id"]
    assert {key: value for key, value in wish.items() if key != "operation_id"} == {
        "host": "h1",
        "consumer_uuid": "vm",
        "pool_uuid": "pool-a",
        "pool_mib": 1024,
        "guest_mib": 4096,
        "project_id": "p",
        "user_id": "u",
        "shape": None,
    }


@pytest.mark.parametrize("fault", [SILENCE("lost"), errors.Unavailable("no controller"), errors.NotLeader("standby")])
def test_a_lost_answer_is_asked_for_again_by_the_same_id(
    pool: PoolAttachments, agents: FakeAgents, fault: Exception
) -> None:
    agents.faults["attach"] = [fault]
    _attach(pool)
    first, second = agents.attaches
    assert first["operation_id"] == second["operation_id"]


def test_each_attach_has_its_own_id(pool: PoolAttachments, agents: FakeAgents) -> None:
    _attach(pool)
    pool.release("h1", "vm")
    _attach(pool)
    first, second = agents.attaches
    assert first["operation_id"] != second["operation_id"]


def test_a_silent_agent_is_given_up_after_two_tries(pool: PoolAttachments, agents: FakeAgents, time: Time) -> None:
    agents.down.add("h1")
    with refused(r"host h1, pool pool-a, .*1024 MiB .*start pondstack-agent there"):
        _attach(pool)
    assert agents.log == ["attach h1"] * 2
    assert time.now < 5


def test_both_tries_together_take_agent_monitor_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    monkeypatch.setattr(agent_client.rpc, "get_transport", lambda _conf, _own, url, **_shared: url)
    monkeypatch.setattr(
        agent_client, "AgentAPI", lambda transport, **options: made.update(options, transport=transport)
    )
    agent_client.make_api()
    options = agent_client.CONF.pondstack
    assert made["monitor_seconds"] * agent_client.SILENT_TRIES == options.agent_monitor_seconds == 10
    assert made["timeout_seconds"] == options.attach_timeout_seconds == 60
    assert made["transport"] is None


def test_a_controller_that_stays_away_is_waited_for_until_the_timeout(
    pool: PoolAttachments, agents: FakeAgents, time: Time
) -> None:
    agents.faults["attach"] = [errors.Unavailable("the controller does not answer")] * 1000
    with refused("start pondstack-controller"):
        _attach(pool)
    assert 60 <= time.now < 70
    assert agents.log[-1] == "detach h1"


RETURNING = errors.SlicesReturning("pool p: 2 slices are wanted, 1 are free and 2 on their way back")


def test_slices_on_their_way_back_are_waited_for_by_the_same_id(
    pool: PoolAttachments, agents: FakeAgents, time: Time
) -> None:
    agents.faults["attach"] = [RETURNING] * 25
    assert _attach(pool).pool_mib == 1024
    assert time.now == 25
    assert len({wish["operation_id"] for wish in agents.attaches}) == 1


def test_the_wait_for_slices_has_a_budget_of_its_own(pool: PoolAttachments, agents: FakeAgents, time: Time) -> None:
    agents.faults["attach"] = [RETURNING] * 1000
    with refused(r"2 on their way back. Next: see .* shortage_wait_seconds"):
        _attach(pool)
    assert time.now == agent_client.CONF.pondstack.shortage_wait_seconds == 30
    assert agents.log[-1] == "detach h1"


def test_a_shortage_that_turns_out_not_to_end_is_not_waited_for(
    pool: PoolAttachments, agents: FakeAgents, time: Time
) -> None:
    agents.faults["attach"] = [RETURNING, errors.PoolShortage("0 more are on their way back"), RETURNING]
    with refused("0 more are on their way back"):
        _attach(pool)
    assert time.now == 1


def test_without_a_budget_every_shortage_fails_at_once(pool: PoolAttachments, agents: FakeAgents, time: Time) -> None:
    agents.faults["attach"] = [RETURNING] * 3
    agent_client.CONF.set_override("shortage_wait_seconds", 0, group="pondstack")
    try:
        with pytest.raises(PoolMemoryUnavailable):
            _attach(pool)
    finally:
        agent_client.CONF.clear_override("shortage_wait_seconds", group="pondstack")
    assert time.now == 0


def test_a_wait_that_outlasts_the_timeout_for_the_controller_goes_on(
    pool: PoolAttachments, agents: FakeAgents, time: Time
) -> None:
    """The budget for slices may be longer than the one for a controller that is away."""
    agents.faults["attach"] = [RETURNING] * 80
    agent_client.CONF.set_override("shortage_wait_seconds", 90, group="pondstack")
    try:
        assert _attach(pool).pool_mib == 1024
    finally:
        agent_client.CONF.clear_override("shortage_wait_seconds", group="pondstack")
    assert time.now == 80


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (errors.PoolShortage("pool p has 0 slices"), "pool p has 0 slices. Next: look at `openstack memory pool show`"),
        (errors.PoolFragmented("no such shape"), "migrate the guest cold"),
        (errors.DeviceFailed("gone"), "look at the pool device"),
        (errors.PermissionHeld("of h2"), "openstack memory audit"),
        (errors.OperationMismatch("used"), "look at pondstack-agent's log"),
        (oslo_messaging.RemoteError("ValueError", "boom", ""), "ValueError"),
    ],
)
def test_a_verdict_is_final_and_says_what_to_do(
    pool: PoolAttachments, agents: FakeAgents, fault: Exception, text: str
) -> None:
    agents.faults["attach"] = [fault]
    with refused(re.escape(text)):
        _attach(pool)
    assert agents.log[0] == "attach h1"
    assert agents.log.count("attach h1") == 1


def test_a_failed_attach_is_undone(pool: PoolAttachments, agents: FakeAgents) -> None:
    agents.faults["attach"] = [errors.PoolShortage("none")]
    with pytest.raises(PoolMemoryUnavailable):
        _attach(pool)
    assert agents.log == ["attach h1", "detach h1"]


def test_nova_reschedules_it() -> None:
    assert issubclass(PoolMemoryUnavailable, exception.ComputeResourcesUnavailable)


def test_the_next_pool_is_tried_where_the_host_does_not_reach_the_first(
    pool: PoolAttachments, agents: FakeAgents
) -> None:
    agents.unreached = {("h1", "pool-a")}
    attached = _attach(pool, PoolClaim(("pool-a", "pool-b"), 1024))
    assert attached.pool_uuid == "pool-b"
    agents.unreached |= {("h1", "pool-b")}
    agents.held.clear()
    with refused("openstack memory host show"):
        _attach(pool, PoolClaim(("pool-a", "pool-b"), 1024))


def test_release_waits_for_the_guests_last_process(pool: PoolAttachments, agents: FakeAgents, time: Time) -> None:
    _attach(pool)
    agents.faults["detach"] = [errors.InUse("QEMU still runs")] * 3
    assert pool.release("h1", "vm")
    assert agents.held == {}
    assert time.now == 1.5


def test_release_gives_up_in_the_end(
    pool: PoolAttachments, agents: FakeAgents, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    agents.faults["detach"] = [errors.InUse("QEMU still runs")] * 1000
    assert not pool.release("h1", "vm")
    assert agent_client.IN_USE_SECONDS <= time.now < agent_client.IN_USE_SECONDS + 1
    assert "was not released: QEMU still runs" in caplog.text


@pytest.mark.parametrize(
    "fault", [SILENCE("lost"), errors.Unavailable("no"), oslo_messaging.MessageDeliveryFailure("x")]
)
def test_release_never_raises(
    pool: PoolAttachments, agents: FakeAgents, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    agents.faults["detach"] = [fault]
    assert not pool.release("h1", "vm")
    assert "What vm may hold of a pool on h1 was not released" in caplog.text
    assert agents.log == ["detach h1"]


def test_find_says_which_host_is_silent(pool: PoolAttachments, agents: FakeAgents) -> None:
    agents.down.add("h1")
    with refused("host h1.*: pondstack-agent does not answer"):
        pool.find("h1", "vm")


def test_the_client_is_made_at_first_use_and_once() -> None:
    made: list[FakeAgents] = []
    pool = PoolAttachments(lambda: made.append(FakeAgents()) or made[-1])
    assert made == []
    pool.find("h1", "vm")
    pool.find("h1", "vm")
    assert len(made) == 1


def test_options_have_bounds_and_units() -> None:
    for option in agent_client.conf.OPTS:
        assert option.help
        if isinstance(option, cfg.IntOpt):
            assert option.type.min is not None
            assert option.type.max is not None
            assert option.name.endswith("_seconds")
