"""Whose traces an agent plays: guests with pool memory on its host, by its own records."""

from typing import Any

from pondstack.domain.purpose import Purpose
from pondstack_agent.controller_link import controller_link
from pondstack_agent.telemetry.service import Telemetry
from pondstack_rack.wait import wait_until


def test_guests_with_pool_memory_are_played(rig: Any) -> None:
    rig.attach("o1", project_id="blue")
    rig.attach("o2", "vm2", purpose=Purpose.BASE)
    (guest,) = rig.agent.played()
    assert (guest.consumer_uuid, guest.project_id, guest.memory_mib, guest.pool_mib) == ("vm1", "blue", 16, 2)
    rig.detach("d1")
    assert rig.agent.played() == []


def test_the_service_plays_them_and_says_so(rig: Any, conf: Any) -> None:
    for name, value in {"guests": "synthetic", "memory_seconds": 1, "batch_seconds": 1}.items():
        conf.set_override(name, value, group="telemetry")
    rig.attach("o1", project_id="blue")
    telemetry = Telemetry(conf, controller_link(rig.controller, None, 5.0), rig.agent.played)
    telemetry.start()
    try:
        assert wait_until(lambda: rig.controller.samples, 30.0, 0.05)
    finally:
        telemetry.stop()
    assert {(item.consumer_uuid, item.source) for item in rig.controller.samples} == {("vm1", "synthetic")}
    assert {item.node for item in rig.controller.samples} == {None, 0, 1}
