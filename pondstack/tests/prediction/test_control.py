"""The control group: as large as it is to be, the same everywhere, and all local."""

from uuid import UUID

import pytest

from pondstack.domain.sizing import Features, Policy, PondSpecs, StaticShare, decide
from pondstack.prediction.control import Control
from pondstack.prediction.serving import controlled

UUIDS = [str(UUID(int=number << 64 | number)) for number in range(20_000)]


@pytest.mark.parametrize("percent", [0.0, 1.0, 10.0, 100.0])
def test_its_share(percent):
    chosen = sum(Control(percent, "seed").has(uuid) for uuid in UUIDS)
    assert chosen == pytest.approx(len(UUIDS) * percent / 100, rel=0.15)


def test_another_seed_is_another_group_and_a_larger_share_has_the_smaller_one_in_it():
    ten = {uuid for uuid in UUIDS if Control(10, "a").has(uuid)}
    assert ten != {uuid for uuid in UUIDS if Control(10, "b").has(uuid)}
    assert ten < {uuid for uuid in UUIDS if Control(20, "a").has(uuid)}
    assert ten == {uuid for uuid in UUIDS if Control.from_wire(Control(10, "a").to_wire()).has(uuid.upper())}


def split(control, policy=Policy.AUTO):
    specs = PondSpecs(policy=policy, pool_mib=1024 if policy is Policy.FIXED else 0)
    features = Features(UUIDS[0], 16384, 4, specs=specs)
    return decide(features, controlled(StaticShare(25), control))


def test_its_vms_are_all_local_and_say_why():
    found = split(Control(100.0, "seed").to_wire())
    assert (found.local_mib, found.pool_mib, found.source) == (16384, 0, "control")
    assert "control group" in found.reason


@pytest.mark.parametrize("control", [None, {}, Control(0.0, "seed").to_wire()])
def test_without_a_group_everybody_is_decided(control):
    assert split(control).pool_mib == 4096


def test_a_flavor_that_fixes_its_share_is_in_no_group():
    assert split(Control(100.0, "seed").to_wire(), Policy.FIXED).pool_mib == 1024
