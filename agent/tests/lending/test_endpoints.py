"""Lent memory over a message bus, by AgentAPI; and a host that takes no part."""

import contextlib
import os
import signal

import oslo_messaging
import pytest

from pondstack.domain.admission import LentReport, mark
from pondstack.domain.errors import Conflict, HostUnusable, InUse, NotFound, StaleEpoch
from pondstack.domain.units import MIB
from pondstack.rpc.agent_api import AgentAPI
from pondstack_agent.lending.program import LENDER
from pondstack_agent.service import AgentService
from tests.fixtures.fake_controller import FakeController

from ..test_service import eventually, expected, serving
from .links import LenderLink


@contextlib.contextmanager
def service(conf, url):
    """A running agent; its lender ends with it."""
    conf.set_override("transport_url", url)
    made = AgentService(conf)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        made.wait()


@pytest.fixture
def lending_conf(conf, rack):
    """The configuration of host1, which lends and borrows. Its lender ends with the test."""
    conf.set_override("heartbeat_seconds", 0.2, group="agent")
    overrides = {"transport": "shm", "shm_folder": str(rack.root), "buffer_mib": 1, "reserve_mib": 0, "pressure_mib": 0}
    for option, value in overrides.items():
        conf.set_override(option, value, group="lending")
    yield conf
    with contextlib.suppress(OSError, KeyError, ValueError):
        os.kill(LENDER.pid(rack.root.__class__(conf.agent.state_dir) / "lender"), signal.SIGTERM)


def test_the_calls_cross_the_bus(lending_conf, device) -> None:
    oslo_messaging.set_transport_defaults("openstack")
    fake = FakeController({"pool0": device})
    with serving(lending_conf, "fake://", fake) as (transport, endpoint):
        add_lending(endpoint)
        with service(lending_conf, "fake://") as agent:
            api = AgentAPI(transport, timeout_seconds=60)
            asked = api.lend("host1", epoch=1, operation_id="op1", mib=2, kind="active")
            assert asked["operation_id"] == "op1"
            eventually(lambda: bool(fake.delegated))
            lent = api.get_lending("host1")
            assert len(lent["buffers"]) == 2
            incarnation = lent["incarnation"]
            assert api.get_lent("host1") == LentReport(2, mark([(incarnation, 0), (incarnation, 1)]))
            answer = api.export("host1", epoch=1, indexes=[0], borrower="host1", incarnation=incarnation)
            with pytest.raises(InUse):
                api.export("host1", epoch=1, indexes=[0], borrower="host2")
            with pytest.raises(InUse):
                api.withdraw("host1", epoch=1, indexes=[0])
            with pytest.raises(NotFound):
                api.export("host1", epoch=1, indexes=[7], borrower="host2")
            with pytest.raises(StaleEpoch):
                api.revoke("host1", epoch=0, indexes=[0])
            assert api.prepare("host1", epoch=1, lender="host1", allocation_uuid="allocation1", **answer) == [0]
            link = LenderLink(lending_conf, agent._agent.borrower, "host1", incarnation)
            link.write(0, MIB - 1, b"x")
            link.close()
            assert api.get_borrowing("host1")["lenders"][0]["allocations"] == {"allocation1": [0]}
            eventually(lambda: fake.reports[-1].borrowed["lenders"] != [])
            allocation = {
                "allocation_uuid": "allocation1",
                "lender": "host1",
                "incarnation": incarnation,
                "indexes": [0],
            }
            api.give_back("host1", epoch=1, **allocation)
            eventually(lambda: list(fake.released_buffers.values()) == [{"host": "host1", **allocation}])
            assert api.revoke("host1", epoch=1, indexes=[0], incarnation=incarnation) == [0]
            # A key that was given back, and comes again late.
            with pytest.raises(Conflict):
                api.prepare("host1", epoch=1, lender="host1", allocation_uuid="allocation1", **answer)
            api.reclaim("host1", epoch=1, operation_id="op2", mib=2, seconds=0.0)
            eventually(lambda: api.get_lending("host1")["operations"][-1]["state"] == "done")
            assert api.get_lending("host1")["incarnation"] == ""


def add_lending(endpoint) -> None:
    """Let the controller on the bus answer calls about lent memory, of their version."""
    kind = type(endpoint)

    class WithLending(kind):
        target = oslo_messaging.Target(version="1.2")

        @expected
        def delegate(self, _context, **arguments):
            self.fake.delegate(**arguments)

        @expected
        def reclaim(self, _context, **arguments):
            return self.fake.reclaim(**arguments)

        @expected
        def release_buffers(self, _context, **arguments):
            self.fake.release_buffers(**arguments)

    endpoint.__class__ = WithLending


def test_a_host_that_takes_no_part_says_so(conf, device) -> None:
    oslo_messaging.set_transport_defaults("openstack")
    fake = FakeController({"pool0": device})
    with serving(conf, "fake://", fake) as (transport, endpoint), service(conf, "fake://"):
        api = AgentAPI(transport, timeout_seconds=60)
        with pytest.raises(HostUnusable, match=r"set \[lending\] transport"):
            api.get_lending("host1")
        with pytest.raises(HostUnusable):
            api.give_back("host1", epoch=1, allocation_uuid="l", lender="host2", indexes=[0])
        assert endpoint.heard.wait(60)
        assert (fake.reports[0].lending, fake.reports[0].borrowed) == (None, None)
