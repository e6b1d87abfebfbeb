"""A report that was long on its way proves nothing about what happened since."""

from pondstack.tests.controller.conftest import call


def test_a_late_report_that_its_host_does_not_repeat_is_not_acted_on(rack):
    late = rack.agents["h1"].report()
    rack.online(slices=2)
    call(rack.endpoint.heartbeat, report=late.to_wire())
    rack.agents["h1"].up = False
    assert "agent_lost" in rack.reconcile()
    assert rack.count("online") == 2
    rack.agents["h1"].up = True
    assert "agent_lost" not in rack.reconcile()


def test_an_audit_does_not_act_on_it_either(rack):
    late = rack.agents["h1"].report()
    rack.online(slices=2)
    call(rack.endpoint.heartbeat, report=late.to_wire())
    rack.agents["h1"].up = False
    answer = call(rack.endpoint.audit, repair=True)
    assert rack.count("online") == 2
    assert not answer["clean"]


def test_what_the_host_repeats_is_acted_on(rack):
    rack.online(slices=2)
    rack.agents["h1"].attached.clear()
    assert "agent_lost" in rack.reconcile()
    assert rack.count("quarantined") == 2
