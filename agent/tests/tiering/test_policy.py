"""Options to settings, and whether local and pool memory are in different tiers."""

import pytest
from oslo_config import cfg

from pondstack.conf import tiering as tiering_conf
from pondstack_agent.host.hotplug import Hotplug
from pondstack_agent.tiering.nodes import NodeReader, Nodes
from pondstack_agent.tiering.policy import Policy

from .conftest import NODES, TIERS


def policy(**options: object) -> Policy:
    conf = cfg.ConfigOpts()
    tiering_conf.register_opts(conf)
    conf([], default_config_files=[])
    for name, value in options.items():
        conf.set_override(name, value, group="tiering")
    return Policy.from_conf(conf)


def test_the_defaults_ask_for_nothing() -> None:
    assert policy() == Policy()
    assert list(policy().settings(Nodes((0,), (1,), {}), "auto")) == []


def test_the_kernels_texts() -> None:
    wanted = policy(
        demotion="on", promotion="with_balancing", promote_limit_mib_per_second=512, watermark_scale_factor=150
    )
    assert [(item.name, item.value) for item in wanted.settings(Nodes((0, 1), (2,), {}))] == [
        ("demotion", "true"),
        ("watermark_scale_factor", "150"),
        ("promote_limit_mib_per_second", "512"),
        ("promotion", "3"),
    ]


@pytest.mark.parametrize(("option", "value", "moves"), [("on", "2", True), ("off", "0", False), ("leave", None, False)])
def test_promotion(option: str, value: str | None, moves: bool) -> None:
    assert policy(promotion=option).promotion == value
    assert policy(promotion=option).moves is moves


def test_weights_are_for_each_node() -> None:
    settings = policy(interleave="5:1").settings(Nodes((0, 1), (2,), {}))
    assert [(item.name, item.value) for item in settings] == [
        ("interleave_node0", "5"),
        ("interleave_node1", "5"),
        ("interleave_node2", "1"),
    ]


@pytest.mark.parametrize("text", ["0:1", "5:0", "256:1"])
def test_weights_that_the_kernel_does_not_have_stop_the_agent(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 255"):
        policy(interleave=text)


@pytest.mark.parametrize("text", ["5", "5:1:1", "a:b", "5:1 "])
def test_other_texts_are_no_weights(text: str) -> None:
    with pytest.raises(ValueError, match="regex"):
        policy(interleave=text)


def test_pool_memory_in_a_tier_of_its_own(machine) -> None:
    machine.online(1, tier=22)
    nodes = NodeReader(machine.kernel()).look()
    assert nodes == Nodes((0,), (1,), {4: (0,), 22: (1,)})
    assert nodes.trouble() == ""


def test_without_pool_memory_there_is_nothing_to_tell(machine) -> None:
    assert NodeReader(machine.kernel()).look().trouble() == ""


def test_pool_memory_in_the_tier_of_local_memory_is_told(machine, start) -> None:
    machine.online(1, tier=4)
    assert "EFI_MEMORY_SP" in NodeReader(machine.kernel()).look().trouble()
    [trouble] = start(demotion="true").report()["trouble"]
    assert trouble.startswith("node 1 is not in a lower memory tier than local memory (tier 4)")
    assert start(watermark="20").report()["trouble"] == []  # nothing is to move


def test_pool_memory_in_a_faster_tier_is_told() -> None:
    assert "not in a lower memory tier" in Nodes((0,), (1,), {3: (1,), 4: (0,)}).trouble()


def test_a_kernel_without_tiers_is_told(machine) -> None:
    machine.put(f"{NODES}/has_memory", "0-1")
    for path in sorted((machine.root / TIERS).rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert "node 1 is in no memory tier" in NodeReader(machine.kernel()).look().trouble()


def test_a_local_node_without_memory_is_no_local_node(machine) -> None:
    machine.put(f"{NODES}/has_cpu", "0-1")
    machine.online(2, tier=22)
    assert NodeReader(machine.kernel()).look().local == (0,)


def test_tiers_are_read_when_a_node_is_new_and_not_with_each_look(machine) -> None:
    machine.online(1, tier=22)
    reader = NodeReader(machine.kernel())
    found = reader.look()
    machine.put(f"{TIERS}/memory_tier22/nodelist", "nobody reads this")
    assert reader.look() == found
    machine.put(f"{NODES}/has_memory", "0")
    assert reader.look() == Nodes((0,), (), {4: (0,)})
    machine.online(1, tier=23)
    (machine.root / TIERS / "memory_tier22/nodelist").unlink()
    assert reader.look().tiers == {4: (0,), 23: (1,)}


def test_tiers_are_not_read_while_memory_goes_offline(machine) -> None:
    hotplug = Hotplug()
    reader = NodeReader(machine.kernel(), hotplug)
    reader.look()
    with hotplug.offlining():
        machine.online(1, tier=22)
        nodes = reader.look()
    assert nodes == Nodes((0,), (), {4: (0,)})
    assert nodes.trouble() == ""
    assert reader.look().pool == (1,)


def test_where_tiers_were_never_read_local_nodes_are_local(machine) -> None:
    hotplug = Hotplug()
    machine.online(1, tier=22)
    with hotplug.offlining():
        assert NodeReader(machine.kernel(), hotplug).look() == Nodes((0,), (), {})
