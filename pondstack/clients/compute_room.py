"""What all compute hosts of a cloud may give out together, as Placement counts it."""

from collections import Counter
from dataclasses import dataclass

from pondstack.clients.placement import Placement
from pondstack.domain.units import COMPUTE_TRAIT


@dataclass(frozen=True, slots=True)
class ComputeRoom:
    """Of `number` hosts: vCPUs and MiB of memory, with allocation ratios, less reservations; what of it is claimed."""

    number: int
    vcpus: int
    memory_mib: int
    claimed_vcpus: int
    claimed_mib: int

    @classmethod
    def of(cls, placement: Placement) -> "ComputeRoom":
        """Ask Placement; raises Unavailable."""
        providers = placement.with_trait(COMPUTE_TRAIT)
        vcpus, memory, claimed = 0.0, 0.0, Counter[str]()
        for uuid in providers:
            claimed.update(placement.usages(uuid))
            for name, item in placement.inventories(uuid).items():
                given = (item.total - item.reserved) * item.allocation_ratio
                vcpus += given if name in ("VCPU", "PCPU") else 0.0
                memory += given if name == "MEMORY_MB" else 0.0
        used = claimed["VCPU"] + claimed["PCPU"]
        return cls(len(providers), int(vcpus), int(memory), used, claimed["MEMORY_MB"])
