"""The agent as a whole: its service sets and restores, its report tells."""

import oslo_messaging
import pytest

from pondstack_agent import build
from pondstack_agent.records import Records
from pondstack_agent.service import AgentService
from pondstack_agent.tiering import Tiering
from pondstack_agent.tiering.policy import Policy
from pondstack_rack.wait import wait_until
from tests.fixtures.fake_controller import FakeController

from ..test_service import serving
from .conftest import DEMOTION, WEIGHTS


@pytest.fixture
def on_machine(conf, machine, monkeypatch):
    """The configuration of an agent over that machine's kernel."""

    def from_conf(conf, records):
        return Tiering(Policy.from_conf(conf), machine.kernel(), records)

    monkeypatch.setattr(build.Tiering, "from_conf", from_conf)
    conf.set_override("demotion", "on", group="tiering")
    conf.set_override("interleave", "5:1", group="tiering")
    return conf


TOLD = {"settings": {"demotion": "true", "interleave_node0": "5"}, "tiers": {"4": [0]}, "trouble": []}


def test_the_service_sets_reports_and_restores(on_machine, machine, device, tmp_path) -> None:
    before = machine.all()
    on_machine.set_override("heartbeat_seconds", 0.2, group="agent")
    oslo_messaging.set_transport_defaults("openstack")
    with serving(on_machine, "fake://", FakeController({"pool0": device})) as (_transport, endpoint):
        on_machine.set_override("transport_url", "fake://")
        service = AgentService(on_machine)
        service.start()
        try:
            # Not the first report: the bus of this process may still hold one of a former test's agent.
            assert wait_until(lambda: TOLD in [report.tiering for report in endpoint.fake.reports], 30)
            assert machine.get(DEMOTION) == "true"
            assert machine.get(f"{WEIGHTS}/node0") == "5"
        finally:
            service.stop()
        service.wait()
    assert machine.all() == before
    assert Records(tmp_path / "state" / "tiering").all() == {}


def test_an_agent_without_a_policy_reports_nothing(rig) -> None:
    assert rig.agent.reporter.report().tiering == {}
