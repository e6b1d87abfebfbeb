"""What a host lends is taken out of what its provider offers, and never less."""

from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest
from nova.compute import provider_tree

from pondstack.domain.admission import LENT_CLASS, LentReport
from pondstack.domain.errors import HostUnusable, Unavailable
from pondstack_nova.compute.lent_inventory import Unknown, reserve
from pondstack_nova.compute.lent_memory import LentMemoryReader
from pondstack_nova.compute.own_agent import AGAIN_SECONDS
from pondstack_nova.compute.remote.mirror_room import MirrorRoomReader
from tests.fixtures.fake_agents import FakeAgents

from .virt_rig import Driver, NovaDriver

MEMORY = {"total": 8192, "reserved": 512, "max_unit": 8192, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
INVENTORY: dict[str, Any] = {"MEMORY_MB": MEMORY, "VCPU": {"total": 4}}
LENT = LentReport(1024, 77)


def reserved(found: dict[str, Any]) -> tuple[int, int]:
    """Return what is reserved, and what of it is said to be lent."""
    return found["MEMORY_MB"]["reserved"], found.get(LENT_CLASS, {}).get("total", 0)


def test_what_is_lent_is_reserved_and_named_in_one_inventory() -> None:
    found = reserve(INVENTORY, INVENTORY, LENT)
    assert reserved(found) == (1536, 1024)
    assert found[LENT_CLASS]["max_unit"] == 77
    assert found[LENT_CLASS]["reserved"] == 1024, "nobody can claim it"
    assert found["VCPU"] == {"total": 4}
    assert INVENTORY["MEMORY_MB"]["reserved"] == 512


def test_nothing_is_lent_any_more() -> None:
    assert reserved(reserve(INVENTORY, reserve(INVENTORY, {}, LENT), LentReport(0, 1))) == (512, 0)


@pytest.mark.parametrize("why", Unknown)
def test_who_does_not_say_leaves_what_placement_has(why: Unknown) -> None:
    before = reserve(INVENTORY, INVENTORY, LENT)
    assert reserve(INVENTORY, before, why) == before
    assert reserved(reserve(INVENTORY, INVENTORY, why)) == (512, 0)


def test_a_provider_that_is_new_offers_nothing_while_nobody_says_what_is_lent() -> None:
    found: dict[str, Any] = {}
    for _ in range(3):
        found = reserve(INVENTORY, found, Unknown.SILENT)
        assert reserved(found) == (8192, 8192)
    assert reserved(reserve(INVENTORY, found, LENT)) == (1536, 1024)
    assert reserved(reserve(INVENTORY, found, LentReport(0, 1))) == (512, 0)
    assert reserved(reserve(INVENTORY, found, Unknown.NO_PART)) == (512, 0)
    assert reserved(reserve(INVENTORY, {}, Unknown.NO_PART)) == (512, 0)


def test_no_more_is_reserved_than_there_is() -> None:
    assert reserved(reserve(INVENTORY, INVENTORY, LentReport(8192, 3))) == (8192, 8192)


def test_a_host_without_memory_of_its_own_is_left_alone() -> None:
    assert reserve({"VCPU": {"total": 4}}, {}, LENT) == {"VCPU": {"total": 4}}


def test_the_driver_reserves_it_in_each_round() -> None:
    agents, tree = FakeAgents(), provider_tree.ProviderTree()
    tree.new_root("h1", "11111111-2222-3333-4444-555555555555")
    driver = Driver(SimpleNamespace())
    driver.lent_memory = LentMemoryReader(lambda: agents)  # type: ignore[arg-type, return-value]
    driver.mirror_room = MirrorRoomReader(lambda: agents)  # type: ignore[arg-type, return-value]
    agents.lent["h1"] = LENT
    for _ in range(2):
        driver.update_provider_tree(tree, "h1")
        assert reserved(tree.data("h1").inventory) == (1536, 1024)
    agents.down.add("h1")
    driver.update_provider_tree(tree, "h1")
    assert reserved(tree.data("h1").inventory) == (1536, 1024)
    agents.down.clear()
    agents.lent.clear()
    driver.update_provider_tree(tree, "h1")
    assert reserved(tree.data("h1").inventory) == (512, 0)
    assert agents.log == []
    assert issubclass(Driver, NovaDriver)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (HostUnusable("it lends nothing"), Unknown.NO_PART),
        (oslo_messaging.RemoteError("UnsupportedVersion", "1.3"), Unknown.NO_PART),
        (Unavailable("the lender is frozen"), Unknown.SILENT),
    ],
)
def test_an_agent_that_cannot_say_is_asked_again_at_once(error: Exception, why: Unknown) -> None:
    agents = FakeAgents()
    reader = LentMemoryReader(lambda: agents, clock=lambda: 0.0)  # type: ignore[arg-type, return-value]
    agents.lent["h1"] = LENT
    agents.faults["get_lent"] = [error] * 5
    assert [reader.read("h1") for _ in range(6)] == [why] * 5 + [LENT]


def test_a_silent_agent_does_not_hold_up_each_claim() -> None:
    now, asked = [0.0], []
    agents = SimpleNamespace(get_lent=lambda host: asked.append(host) or _silent())
    reader = LentMemoryReader(lambda: agents, clock=lambda: now[0])  # type: ignore[arg-type, return-value]
    for _ in range(6):
        assert reader.read("h1") is Unknown.SILENT
    assert len(asked) == 3
    now[0] += AGAIN_SECONDS
    assert reader.read("h1") is Unknown.SILENT
    assert len(asked) == 4


def _silent() -> LentReport:
    raise oslo_messaging.MessagingTimeout("h1")
