"""Which nodes of the host are local, which are pool memory, and whether the kernel has them in different tiers."""

from collections.abc import Mapping
from dataclasses import dataclass

from pondstack_agent.host.hotplug import HOTPLUG, Hotplug
from pondstack_agent.tiering.kernel import Kernel

NODES = "sys/devices/system/node"
TIERS = "sys/devices/virtual/memory_tiering"


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes with memory. `local`: with CPUs; `pool`: without. `tiers`: nodes by number of the kernel's memory tier.

    A higher tier number is slower memory: the number is the abstract distance that the kernel gave it, by 1024.
    """

    local: tuple[int, ...]
    pool: tuple[int, ...]
    tiers: Mapping[int, tuple[int, ...]]

    def tier(self, node: int) -> int | None:
        """Return the tier of a node, None while it is in none."""
        return next((tier for tier, nodes in self.tiers.items() if node in nodes), None)

    def trouble(self) -> str:
        """Tell why the kernel cannot demote from local to pool memory or promote back, '' when it can.

        Without pool memory online there is nothing to tell.
        """
        homeless = [node for node in self.pool if self.tier(node) is None]
        if homeless:
            return (
                f"node {_listed(homeless)} is in no memory tier: this kernel has no memory tiering (6.1 or newer has), "
                "so nothing is demoted or promoted"
            )
        local = max((tier for node in self.local if (tier := self.tier(node)) is not None), default=None)
        same = [node for node in self.pool if local is not None and (self.tier(node) or 0) <= local]
        if same:
            return (
                f"node {_listed(same)} is not in a lower memory tier than local memory (tier {local}): the kernel took "
                "it for ordinary memory at boot, or the firmware's HMAT or the device's CDAT call it as fast. Nothing "
                "is demoted to it. Have the firmware mark CXL memory as specific purpose (EFI_MEMORY_SP), so that kmem "
                "brings it online, and correct HMAT or CDAT; the tier itself cannot be written"
            )
        return ""


class NodeReader:
    """Reads nodes and tiers. A node that was found in a tier is not looked for again until it was gone.

    So tiers are read when a node is new, not with each report: the less often, the less can meet memory that somebody
    else takes offline (see `hotplug`).
    """

    def __init__(self, kernel: Kernel, hotplug: Hotplug = HOTPLUG) -> None:
        self._kernel, self._hotplug = kernel, hotplug
        self._tiers: dict[int, frozenset[int]] = {}

    def look(self) -> Nodes:
        """Return what the kernel says now; a node that is new while memory goes offline counts from later on."""
        with_cpu, with_memory = (self._kernel.numbers(f"{NODES}/{name}") for name in ("has_cpu", "has_memory"))
        if not with_memory <= self._known:
            with self._hotplug.reading() as allowed:
                if allowed:
                    self._tiers = self._read()
                else:
                    with_memory &= self._known | with_cpu
        left = {tier: nodes & with_memory for tier, nodes in self._tiers.items()}
        self._tiers = {tier: nodes for tier, nodes in left.items() if nodes}
        tiers = {tier: tuple(sorted(nodes)) for tier, nodes in self._tiers.items()}
        return Nodes(tuple(sorted(with_cpu & with_memory)), tuple(sorted(with_memory - with_cpu)), tiers)

    @property
    def _known(self) -> frozenset[int]:
        return frozenset[int]().union(*self._tiers.values())

    def _read(self) -> dict[int, frozenset[int]]:
        return {
            int(name.removeprefix("memory_tier")): self._kernel.numbers(f"{TIERS}/{name}/nodelist")
            for name in self._kernel.names(TIERS)
            if name.removeprefix("memory_tier").isdigit()
        }


def _listed(nodes: list[int]) -> str:
    return ", ".join(map(str, nodes))
