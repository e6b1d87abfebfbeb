"""Tiering at run time: an order goes before the options, lasts, and is refused where nothing can be demoted."""

from types import SimpleNamespace

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack_agent.records import Records
from pondstack_agent.tiering.policy import Policy
from pondstack_agent.tiering.switch import TieringSwitch
from pondstack_agent.tiering.tiering import Tiering

from .conftest import BALANCING, DEMOTION, WATERMARK


@pytest.fixture
def opened(machine, tmp_path):
    """Open an agent's tiering and its switch over what is on disk, with a policy, and start it."""

    def make(nodes=True, **policy):
        tiering = Tiering(Policy(**policy), machine.kernel(), Records(tmp_path / "tiering"))
        switch = TieringSwitch(tiering, SimpleNamespace(nodes=nodes), Records(tmp_path / "order"))
        tiering.start()
        return tiering, switch

    return make


def test_on_off_and_as_configured(machine, opened):
    before = machine.all()
    tiering, switch = opened()
    assert tiering.report() == {}
    switch.order(True)
    assert (machine.get(DEMOTION), machine.get(BALANCING)) == ("true", "2")
    assert tiering.report()["settings"] == {"demotion": "true", "promotion": "2"}
    switch.order(False)
    assert (machine.get(DEMOTION), machine.get(BALANCING)) == ("false", "1")
    switch.order(True)
    switch.order(None)
    assert machine.all() == before
    assert tiering.report() == {}


def test_off_is_off_whatever_is_configured(machine, opened):
    tiering, switch = opened(demotion="true", promotion="3", watermark="200")
    switch.order(False)
    assert (machine.get(DEMOTION), machine.get(BALANCING)) == ("false", "0")
    assert machine.get(WATERMARK) == "200"
    switch.order(True)
    assert machine.get(BALANCING) == "3", "how pages come up is the option's"
    switch.order(None)
    assert tiering.report()["trouble"] == []


def test_an_order_outlives_agent_and_host(machine, opened):
    before = machine.all()
    tiering, switch = opened()
    switch.order(True)
    tiering.stop()
    assert machine.all() == before, "an agent that ends puts everything back"
    opened()
    assert machine.get(DEMOTION) == "true"
    machine.reboot()
    tiering, _ = opened()
    assert machine.get(DEMOTION) == "true"
    tiering.stop()


def test_the_same_order_with_each_heartbeat_changes_nothing(machine, opened):
    _, switch = opened()
    switch.follow(True)
    machine.writes.clear()
    switch.follow(True)
    assert machine.writes == []
    machine.put(DEMOTION, "false")
    switch.follow(True)
    assert machine.writes == [], "what others changed stays, as with options"


def test_pool_memory_that_is_no_node_is_refused(machine, opened):
    before = machine.all()
    _, switch = opened(nodes=False)
    with pytest.raises(HostUnusable, match="no memory node"):
        switch.order(True)
    switch.follow(True)
    switch.order(False)
    assert machine.get(DEMOTION) == before[DEMOTION]


def test_a_kernel_that_does_not_demote_is_refused_and_left_as_it_was(machine, opened):
    (machine.root / DEMOTION).unlink()
    tiering, switch = opened()
    with pytest.raises(HostUnusable, match="does not demote: this kernel has no"):
        switch.order(True)
    assert machine.get(BALANCING) == "1"
    assert tiering.report() == {}


def test_an_agent_follows_the_answer_to_its_heartbeat(rig):
    orders = []
    rig.agent.reporter._switch.follow = orders.append
    plain = rig.controller.heartbeat
    rig.beat()
    assert orders == [], "a controller of the former release says nothing of it"
    rig.controller.heartbeat = lambda report: {**plain(report), "tiering": True}
    rig.beat()
    assert orders == [True]
