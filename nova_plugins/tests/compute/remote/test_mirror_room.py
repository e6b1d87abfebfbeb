"""A host's room for mirrors in Placement."""

from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest
from nova.compute import provider_tree

from nova_plugins.tests.compute.virt_rig import Driver
from pondstack.domain.errors import HostUnusable, Unavailable
from pondstack_nova.compute.lent_memory import LentMemoryReader
from pondstack_nova.compute.own_agent import AGAIN_SECONDS
from pondstack_nova.compute.remote.mirror_inventory import offer
from pondstack_nova.compute.remote.mirror_room import MirrorRoomReader
from tests.fixtures.fake_agents import FakeAgents

CLASS = "CUSTOM_POND_MIRROR_MB"
MEMORY: dict[str, Any] = {"MEMORY_MB": {"total": 8192}}


def room(found: dict[str, Any]) -> tuple[int, int] | None:
    """Return what is offered and what of it is reserved."""
    return (found[CLASS]["total"], found[CLASS]["reserved"]) if CLASS in found else None


def test_what_is_offered() -> None:
    found = offer(MEMORY, {}, 4096)
    assert found[CLASS] == {
        "total": 4096,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 4096,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }
    assert found["MEMORY_MB"] == MEMORY["MEMORY_MB"]
    assert CLASS not in MEMORY


@pytest.mark.parametrize("nobody", [0, None])
def test_a_host_that_never_offered_any(nobody: int | None) -> None:
    assert room(offer(MEMORY, MEMORY, nobody)) is None


def test_what_was_offered_stays() -> None:
    """A guest may claim it. All of it is reserved where there is no data plane any more, and may come back."""
    before = offer(MEMORY, {}, 4096)
    assert room(offer(MEMORY, before, None)) == (4096, 0)
    gone = offer(MEMORY, before, 0)
    assert room(gone) == (4096, 4096)
    assert room(offer(MEMORY, gone, None)) == (4096, 4096)
    assert room(offer(MEMORY, gone, 2048)) == (2048, 0)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (HostUnusable("no data plane"), 0),
        (oslo_messaging.RemoteError("UnsupportedVersion", "1.8"), 0),
        (oslo_messaging.UnsupportedVersion("1.8"), 0),
        (Unavailable("it starts"), None),
    ],
)
def test_why_there_is_none(error: Exception, told: int | None) -> None:
    agents = FakeAgents()
    agents.mirror_mib["h1"] = 4096
    reader = MirrorRoomReader(lambda: agents, clock=lambda: 0.0)  # type: ignore[arg-type, return-value]
    agents.faults["get_mirror_room"] = [error] * 5
    assert [reader.read("h1") for _ in range(6)] == [told] * 5 + [4096]


def test_a_silent_agent_is_not_asked_each_time() -> None:
    now, asked = [0.0], []
    agents = SimpleNamespace(get_mirror_room=lambda host: asked.append(host) or _silent())
    reader = MirrorRoomReader(lambda: agents, clock=lambda: now[0])  # type: ignore[arg-type, return-value]
    assert {reader.read("h1") for _ in range(6)} == {None}
    assert len(asked) == 3
    now[0] += AGAIN_SECONDS
    assert reader.read("h1") is None
    assert len(asked) == 4


def _silent() -> dict[str, int]:
    raise oslo_messaging.MessagingTimeout("h1")


def test_the_driver_offers_it_in_each_round() -> None:
    agents, tree = FakeAgents(), provider_tree.ProviderTree()
    tree.new_root("h1", "11111111-2222-3333-4444-555555555555")
    driver = Driver(SimpleNamespace())
    driver.lent_memory = LentMemoryReader(lambda: agents)  # type: ignore[arg-type, return-value]
    driver.mirror_room = MirrorRoomReader(lambda: agents)  # type: ignore[arg-type, return-value]
    for mib, offered in ((0, None), (4096, (4096, 0)), (8192, (8192, 0))):
        if mib:
            agents.mirror_mib["h1"] = mib
        driver.update_provider_tree(tree, "h1")
        assert room(tree.data("h1").inventory) == offered
    driver._pond_no_remote = lambda: "its disks are opened with O_DIRECT"  # type: ignore[method-assign]
    driver.update_provider_tree(tree, "h1")
    assert room(tree.data("h1").inventory) == (8192, 8192)
