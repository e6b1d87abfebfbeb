"""The bad days, each on the running rack: what fails, fails cleanly, and within a minute nothing is left behind.

Fake computes: what breaks here is accounting, not guests. Every wait is for a condition, with a deadline.
"""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from keystoneauth1.exceptions import BadRequest
from oslo_messaging import MessagingTimeout

from pondstack.domain.errors import Conflict, OperationMismatch, StaleEpoch
from pondstack.domain.model import Extent
from pondstack.domain.requests import AssignRequest
from pondstack.domain.units import GIB_MIB
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import Grant
from pondstack_rack.rack import Rack
from tests.rack.outages import SILENT_SECONDS, Days

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]


@pytest.fixture
def days(rack: Rack) -> Iterator[Days]:
    """A day on the rack, which is clean before and mended after."""
    with Days(rack) as days:
        yield days


def test_a_good_day(days: Days) -> None:
    """The tests below mean something only if this passes: a boot holds slices, its end gives them back."""
    server = days.boot(days.flavor(pool_mib=2 * GIB_MIB))
    assert days.until_built(server) == "ACTIVE"
    (allocation,) = days.allocations(server)
    assert allocation["pool_mib"] == days.claimed_mib(server) == 2 * GIB_MIB
    assert allocation["state"] == "online"
    days.delete(server)
    days.assert_nothing_leaked()


def test_agent_down_at_attach_fails_over_to_another_host(days: Days) -> None:
    hosts = tuple(sorted(days.fakes)[:2])
    # Nova avoids a host whose last build failed (an earlier run of this test): let each succeed once.
    for host in hosts:
        first = days.boot(days.flavor(), host)
        assert days.until_built(first) == "ACTIVE"
        days.delete(first)
    # A big guest on one host: the scheduler prefers the other one, whichever it was, for the guests to come.
    weight = days.boot(days.flavor(memory_mib=32 * GIB_MIB, only=hosts))
    assert days.until_built(weight) == "ACTIVE"
    live = days.server(weight)["OS-EXT-SRV-ATTR:host"]
    (dead,) = set(hosts) - {live}
    flavor = days.flavor(only=hosts)
    days.agent(dead).kill()
    servers = [days.boot(flavor) for _ in range(3)]
    assert [days.until_built(server) for server in servers] == ["ACTIVE"] * 3
    assert {days.server(server)["OS-EXT-SRV-ATTR:host"] for server in servers} == {live}
    assert [dead, live] in [days.tried_hosts(server) for server in servers]
    days.agent(dead).start()
    days.assert_agreement()
    days.delete(weight, *servers)
    days.assert_nothing_leaked()


def test_agent_down_at_attach_without_another_host_fails_cleanly(days: Days) -> None:
    host, (pool,) = min(days.fakes), days.before.pools
    log = days.rack.layout.log / f"pondstack-agent-{host}.log"
    days.agent(host).kill()
    server = days.boot(days.flavor(), host)
    assert days.until_built(server, SILENT_SECONDS) == "ERROR"
    assert days.claimed_mib(server) == 0
    assert days.allocations(server) == []
    # An attach that nobody heard waits in the broker. The agent that comes back refuses it: its sender gave up, and it
    # may be one that was recorded. (Not of `server`: its own detach waits there too.)
    transport, unheard = days.transport(), str(uuid4())
    try:
        late = AssignRequest(unheard, host, pool, pool_mib=GIB_MIB, guest_mib=4 * GIB_MIB)
        with pytest.raises(MessagingTimeout):
            AgentAPI(transport, monitor_seconds=2).attach(str(uuid4()), late)
    finally:
        transport.cleanup()
    days.agent(host).start()
    days.until(lambda: "signed before this process began" in log.read_text(), 30.0, "the late attach was not refused")
    assert days.allocations(unheard) == []
    days.delete(server)
    days.assert_nothing_leaked()


def test_controller_down_at_attach(days: Days) -> None:
    """It dies when it has assigned the slices and nobody else knows of them."""
    host = min(days.fakes)
    flavor = days.flavor()
    with days.in_mid_attach(flavor, host) as server:
        days.kill_controllers()
    assert days.until_built(server) == "ERROR"
    assert days.claimed_mib(server) == 0
    assert [item["state"] for item in days.allocations(server)] == ["assigning"]
    days.start_controllers()
    days.delete(server)
    days.assert_nothing_leaked()
    assert days.until_built(days.boot(flavor, host)) == "ACTIVE"


def test_controller_down_at_scheduling_keeps_the_split(days: Days) -> None:
    """nova-scheduler decides by what it was told last; the guest starts once a controller gives it its slices."""
    flavor = days.flavor()
    before = days.boot(flavor)
    assert days.until_built(before) == "ACTIVE"
    days.kill_controllers()
    server = days.boot(flavor)
    days.until(lambda: days.claimed_mib(server) == GIB_MIB, 60.0, "the split is not claimed")
    days.start_controllers()
    assert days.until_built(server) == "ACTIVE"
    assert sum(item["pool_mib"] for item in days.allocations(server)) == GIB_MIB
    days.delete(before, server)
    days.assert_nothing_leaked()


@pytest.mark.parametrize(
    ("service", "ends"),
    [
        # A broker that is away for longer than the agent may be silent ends the build.
        pytest.param("rabbitmq", {"ACTIVE", "ERROR"}, id="rabbitmq"),
        # The controller, and behind it the virt driver, try again for longer than a restart of the database takes.
        pytest.param("mariadb", {"ACTIVE"}, id="mariadb"),
    ],
)
def test_broker_or_database_restarted_in_mid_boot(days: Days, service: str, ends: set[str]) -> None:
    """The controller has assigned the slices, and goes on while the service is away."""
    host = min(days.fakes)
    flavor = days.flavor()
    with days.in_mid_attach(flavor, host) as held:
        (allocation,) = days.allocations(held)
        others = [days.boot(flavor) for _ in range(3)]
        days.rack.service(service).stop()
    days.until(lambda: days.device_lets_in(allocation["uuid"]), 30.0, "the controller did not go on")
    days.rack.service(service).start()
    assert days.until_built(held) in ends
    lost = days.lost_builds(others)
    for server in {held, *others} - set(lost):
        expected = days.claimed_mib(server) if days.until_built(server) == "ACTIVE" else 0
        assert sum(item["pool_mib"] for item in days.allocations(server) if item["state"] == "online") == expected
    days.assert_agreement()
    days.delete(held, *others)
    days.assert_nothing_leaked()
    again = days.boot(flavor, host)
    assert days.until_built(again) == "ACTIVE"
    assert days.claimed_mib(again) == GIB_MIB


def test_destroy_while_the_agent_is_down_keeps_the_slices_aside(days: Days) -> None:
    host = min(days.fakes)
    server = days.boot(days.flavor(pool_mib=2 * GIB_MIB), host)
    assert days.until_built(server) == "ACTIVE"
    (allocation,) = days.allocations(server)
    held = sorted(
        i for extent in allocation["extents"] for i in range(extent["start"], extent["start"] + extent["count"])
    )
    days.agent(host).kill()
    days.delete(server)
    days.until(lambda: days.in_state("quarantined") == held, 90.0, f"slices {held} were not quarantined")
    reasons = {item["reason"] for item in days.slices() if item["index"] in held}
    assert all(host in reason for reason in reasons)
    # They stay so: other guests come and go, and get other slices.
    other = days.boot(days.flavor(), max(days.fakes))
    assert days.until_built(other) == "ACTIVE"
    assert days.in_state("quarantined") == held
    days.delete(other)
    days.agent(host).start()
    days.assert_nothing_leaked()


def test_more_pool_than_exists_names_pool_and_shortage(days: Days) -> None:
    ((_, pool),) = days.before.pools.items()
    asked = (pool.slices_total + 4) * GIB_MIB
    server = days.boot(days.flavor(pool_mib=asked, memory_mib=asked + 4 * GIB_MIB))
    assert days.until_built(server) == "ERROR"
    fault = days.fault(server)
    assert "No valid host" in fault
    assert pool.name in fault
    assert str(asked) in fault
    assert f"({4 * GIB_MIB} MiB short)" in fault
    days.delete(server)
    days.assert_nothing_leaked()


def test_an_agent_that_reports_slices_which_the_ledger_does_not_know(days: Days) -> None:
    """As after a restore of the database from an old backup. While a guest maps them nobody else gets them."""
    host, stray, index = min(days.fakes), str(uuid4()), days.in_state("free")[-1]
    (pool,) = days.before.pools
    agent, device = days.agent(host), days.device
    epoch = days.cloud.memory.get("/leader").json()["epoch"]
    extent = Extent(index, 1)
    agent.stop()
    device.grant(host, [extent], tag=stray, epoch=epoch)
    grant = Grant(stray, str(uuid4()), host, pool, "pool0", {}, GIB_MIB, (extent,), epoch)
    days.host_driver(host).attach(grant)
    # Only the report tells of them: what the device says would be found by itself.
    device.revoke([index], tag=stray, epoch=epoch)
    held = os.open(days.record(host, stray), os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        agent.start()
        days.until(lambda: days.in_state("quarantined") == [index], 60.0, f"slice {index} was not quarantined")
        (reason,) = {item["reason"] for item in days.slices() if item["index"] == index}
        assert reason.startswith(f"unknown_attachment: {host} reports allocation {stray}")
        codes = {finding["code"] for finding in days.cloud.audit()["findings"]}
        assert "quarantined_in_use" in codes
        assert days.in_state("quarantined") == [index]
    finally:
        os.close(held)
    # The guest is gone: the agent gives them back, they are sanitised, and the device lets nobody in.
    days.assert_nothing_leaked()
    assert device.permissions() == {}


def test_duplicate_and_late_calls_change_nothing(days: Days) -> None:
    """Each call once more after its answer, and once more when all is over."""
    host, (pool,) = min(days.fakes), days.before.pools
    transport = days.transport()
    agent, controller = AgentAPI(transport), ControllerAPI(transport)
    consumer, attach_id, detach_id = str(uuid4()), str(uuid4()), str(uuid4())
    request = AssignRequest(consumer, host, pool, pool_mib=2 * GIB_MIB, guest_mib=4 * GIB_MIB)
    try:
        first = agent.attach(attach_id, request)
        assert agent.attach(attach_id, request) == first
        # What the agent asked the controller for, once more.
        assert controller.assign(attach_id, request).allocation_uuid == first.allocation_uuid
        assert len(days.allocations(consumer)) == 1
        late = {"allocation_uuid": first.allocation_uuid, "host": host}
        with pytest.raises(Conflict, match="does not report that it released"):  # somebody says so in the host's name
            controller.release(operation_id=str(uuid4()), **late)
        assert len(days.in_state("online")) == 2
        acknowledge_id, release_id = str(uuid4()), str(uuid4())
        controller.acknowledge(operation_id=acknowledge_id, **late)
        with pytest.raises(OperationMismatch):
            agent.attach(attach_id, replace(request, pool_mib=GIB_MIB))
        assert agent.detach(host, operation_id=detach_id, consumer_uuid=consumer)
        assert agent.detach(host, operation_id=detach_id, consumer_uuid=consumer)
        controller.release(operation_id=release_id, **late)
        controller.release(operation_id=release_id, **late)
        days.assert_nothing_leaked()
        with pytest.raises(Conflict):
            controller.assign(attach_id, request)
        with pytest.raises(Conflict):
            agent.attach(attach_id, request)
        with pytest.raises(StaleEpoch):
            agent.offline(host, epoch=0, operation_id=str(uuid4()), allocation_uuid=first.allocation_uuid)
        controller.acknowledge(operation_id=acknowledge_id, **late)
        agent.detach(host, operation_id=detach_id, consumer_uuid=consumer)
        days.assert_nothing_leaked()
    finally:
        transport.cleanup()


WRONG = (
    ({"pond:policy": "sometimes"}, "one of auto, fixed, local"),
    ({"pond:polici": "auto"}, "pond:policy"),
    ({"pond:policy": "fixed", "pond:pool_mb": "1000"}, "a positive multiple of 1024"),
    ({"pond:policy": "auto", "pond:pool_mb": "1024"}, "with policy fixed only"),
    ({"pond:policy": "fixed"}, "pond:pool_mb"),
    ({"pond:policy": "auto", "hw:numa_nodes": "2"}, "hw:numa_nodes"),
    ({"pond:policy": "auto", "hw:cpu_policy": "dedicated"}, "hw:cpu_policy"),
)


def test_wrong_specs_are_400_with_the_legal_form(days: Days) -> None:
    flavor = days.cloud.create_flavor(f"{days.prefix}{uuid4().hex[:6]}", 1, 4 * GIB_MIB, {"hw:cpu_sockets": "1"})
    for specs, legal in WRONG:
        with pytest.raises(BadRequest) as refused:
            days.cloud.nova.post(f"/flavors/{flavor}/os-extra_specs", json={"extra_specs": specs})
        assert legal in refused.value.response.text
