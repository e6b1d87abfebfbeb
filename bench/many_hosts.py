"""A thousand compute hosts for the scheduler to choose from: rows in Nova's databases, providers in Placement, pools.

No nova-compute runs for them: nova-scheduler reads hosts from its database and from Placement only.
"""

import uuid
from typing import Any

from nova import context, objects

from tests.functional.base import NovaWithPondstack

HOST_MIB = 262_144
VCPUS = 96
DISK_GB = 10_000
HOSTS_PER_POOL = 16  # Pond section 4.1: pools of 8 to 16 sockets
SLICES_PER_POOL = 512


class ManyHosts(NovaWithPondstack):
    """Nova's real services and Placement with `count` hosts, in pods of HOSTS_PER_POOL around one pool each."""

    hosts = ()

    def fill(self, count: int, show: Any) -> None:
        """Make the hosts and pools; `show(done)` is called after each host."""
        # Nobody reports for these hosts; they must not go down while we measure.
        self.flags(service_down_time=86_400)
        for index in range(count):
            name = f"host{index:05}"
            self._make_host(name)
            self.controller.hosts.append(name)
            show(index + 1)
        names = list(self.controller.hosts)
        for number in range(0, count, HOSTS_PER_POOL):
            self.make_pool(
                f"pool{number // HOSTS_PER_POOL:03}", SLICES_PER_POOL, tuple(names[number:][:HOSTS_PER_POOL])
            )

    def make_pool(self, name: str, slices: int, hosts: tuple[str, ...]) -> str:
        """Make a pool; without hosts (the base's set-up) none."""
        return super().make_pool(name, slices, hosts) if hosts else ""

    def _make_host(self, name: str) -> None:
        admin = context.get_admin_context()
        provider = str(uuid.uuid4())
        objects.Service(admin, host=name, binary="nova-compute", topic="compute", report_count=1).create()
        self._make_compute_node(admin, name, provider)
        objects.HostMapping(admin, host=name, cell_mapping=self.cell_mappings["cell1"]).create()
        url = f"/resource_providers/{provider}"
        self._call("post", "/resource_providers", {"name": name, "uuid": provider}, "1.20")
        inventories = {
            "VCPU": {"total": VCPUS, "allocation_ratio": 4.0},
            "MEMORY_MB": {"total": HOST_MIB, "reserved": 512},
            "DISK_GB": {"total": DISK_GB},
        }
        body = {"resource_provider_generation": 0, "inventories": inventories}
        self._call("put", f"{url}/inventories", body, "1.26")
        traits = {"resource_provider_generation": 1, "traits": ["OWNER_NOVA", "COMPUTE_NODE"]}
        self._call("put", f"{url}/traits", traits, "1.6")

    @staticmethod
    def _make_compute_node(admin: Any, name: str, provider: str) -> None:
        objects.ComputeNode(
            admin,
            uuid=provider,
            host=name,
            hypervisor_hostname=name,
            vcpus=VCPUS,
            vcpus_used=0,
            memory_mb=HOST_MIB,
            memory_mb_used=512,
            free_ram_mb=HOST_MIB - 512,
            local_gb=DISK_GB,
            local_gb_used=0,
            free_disk_gb=DISK_GB,
            disk_available_least=DISK_GB,
            hypervisor_type="QEMU",
            hypervisor_version=10_000_000,
            host_ip="127.0.0.1",
            cpu_info="{}",
            stats={"num_instances": "0", "io_workload": "0", "failed_builds": "0"},
            metrics="[]",
            supported_hv_specs=[objects.HVSpec(arch="x86_64", hv_type="qemu", vm_mode="hvm")],
            running_vms=0,
            current_workload=0,
            cpu_allocation_ratio=4.0,
            ram_allocation_ratio=1.0,
            disk_allocation_ratio=1.0,
            deleted=False,
            mapped=1,
        ).create()
