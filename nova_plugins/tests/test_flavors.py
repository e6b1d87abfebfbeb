"""What `pond:` specs may stand beside."""

import re

import pytest

from pondstack.domain.errors import BadSpec
from pondstack.domain.sizing import Policy
from pondstack_nova import flavors

FIXED = {"pond:policy": "fixed", "pond:pool_mb": "1024"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hw:numa_nodes", "1"),
        ("hw:numa_cpus.0", "0,1"),
        ("hw:numa_mem.1", "512"),
        ("hw:cpu_policy", "dedicated"),
        ("hw:cpu_policy", "mixed"),
        ("hw:cpu_dedicated_mask", "^0"),
        ("hw:cpu_realtime", "yes"),
        ("hw:emulator_threads_policy", "share"),
        ("hw:mem_page_size", "any"),
        ("hw:mem_encryption", "true"),
        ("hw:pmem", "6GB"),
        ("resources:MEMORY_MB", "0"),
        ("resources_POND:CUSTOM_POND_MEMORY_MB", "1024"),
        ("resources1:CUSTOM_POND_REMOTE_MB", "1024"),
    ],
)
def test_contradictions(key: str, value: str) -> None:
    """Each names the spec and shows the legal form; policy=local and flavors without pond: specs go with all."""
    with pytest.raises(BadSpec) as refusal:
        flavors.check(FIXED | {key: value}, 4096)
    assert refusal.value.message.startswith(f"{key}={value} contradicts pond:policy=fixed: ")
    assert "pond:policy=local" in refusal.value.message
    flavors.check({"pond:policy": "local", key: value}, 4096)
    assert flavors.check({key: value}, 4096) is None
    with pytest.raises(BadSpec, match=f"^{re.escape(key)}=.* contradicts pond:remote_mb=1024: .*pond:remote_mb away"):
        flavors.check({"pond:remote_mb": "1024", key: value}, 4096)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hw:cpu_policy", "shared"),
        ("hw:cpu_realtime", "no"),
        ("hw:mem_encryption", "False"),
        ("hw:cpu_sockets", "1"),
        ("hw:numa_nodes_hint", "1"),
        ("trait:HW_CPU_X86_AVX2", "required"),
    ],
)
def test_what_goes_together(key: str, value: str) -> None:
    """Specs that lay out no NUMA nodes are none of our business."""
    specs = flavors.check(FIXED | {key: value}, 4096)
    assert specs is not None
    assert specs.pool_mib == 1024


def test_no_local_memory_left() -> None:
    """The share must be less than the flavor's RAM; without the RAM it cannot be judged."""
    with pytest.raises(BadSpec, match="leaves no local memory in a flavor of 1024 MiB"):
        flavors.check(FIXED, 1024)
    assert flavors.check(FIXED) is not None


def test_remote_memory_is_not_locked() -> None:
    """Pool memory alone leaves that to Nova, which wants page sizes for it."""
    with pytest.raises(BadSpec, match="hw:locked_memory=true contradicts pond:remote_mb=1024"):
        flavors.check({"pond:remote_mb": "1024", "hw:locked_memory": "true"}, 4096)
    for specs in ({"pond:remote_mb": "1024", "hw:locked_memory": "no"}, FIXED | {"hw:locked_memory": "true"}):
        flavors.check(specs, 4096)


def test_remote_memory_leaves_local_memory() -> None:
    """At most half of the flavor by default, and beside the pool share something is left."""
    flavors.check({"pond:remote_mb": "2048"}, 4096)
    with pytest.raises(BadSpec, match="2048 MiB at most"):
        flavors.check({"pond:remote_mb": "2112"}, 4096)
    flavors.check({"pond:remote_mb": "2112"}, 4096, 60)
    with pytest.raises(BadSpec, match="pond:disk_mb=1088 are more than 50 %"):
        flavors.check({"pond:remote_mb": "1024", "pond:disk_mb": "1088"}, 4096)
    with pytest.raises(BadSpec, match="beside 1024 MiB of pool memory leaves 0 MiB"):
        flavors.check(FIXED | {"pond:remote_mb": "1024"}, 2048)


def test_topology_of_image_or_flavor() -> None:
    """A topology that Nova made contradicts pool memory, not policy=local."""
    with pytest.raises(BadSpec, match="NUMA topology"):
        flavors.check_numa(flavors.check(FIXED), object())
    flavors.check_numa(flavors.check(FIXED), None)
    with pytest.raises(BadSpec, match="take pond:remote_mb away"):
        flavors.check_numa(flavors.check({"pond:remote_mb": "1024"}), object())
    flavors.check_numa(flavors.check({"pond:policy": Policy.LOCAL}), object())
    flavors.check_numa(None, object())


def test_a_swap_disk_goes_with_what_lays_out_memory() -> None:
    """It is none of the memory; but its mirror is asked for once."""
    for other in ({"hw:numa_nodes": "2"}, {"hw:mem_page_size": "large"}, {"hw:locked_memory": "true"}):
        assert flavors.check({"pond:swap_mb": "1024", **other}, 4096) is not None
    flavors.check_numa(flavors.check({"pond:swap_mb": "1024"}), object())
    with pytest.raises(BadSpec, match=r"CUSTOM_POND_MIRROR_MB=1 contradicts pond:swap_mb=1024"):
        flavors.check({"pond:swap_mb": "1024", "resources:CUSTOM_POND_MIRROR_MB": "1"}, 4096)


def test_a_swap_disk_has_a_bound() -> None:
    flavors.check({"pond:swap_mb": "8192"}, 4096)
    with pytest.raises(BadSpec, match="more than 200 % of a flavor of 4096 MiB"):
        flavors.check({"pond:swap_mb": "8256"}, 4096)
    flavors.check({"pond:swap_mb": "8256"}, 4096, max_swap_percent=300)
