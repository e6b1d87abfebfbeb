"""An emulated compute host: nova-compute, libvirtd and the agent in it, the rest of the cloud on this machine."""

import os
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from pondstack.cmd import nova_link
from pondstack_agent.host import numa
from pondstack_rack import cloud, config
from pondstack_rack.cloud_client import Cloud, read_openrc
from pondstack_rack.layout import program
from pondstack_rack.processes import VHOST, has_consumer
from pondstack_rack.rack import Rack
from pondstack_rack.servers import LOOPBACK
from pondstack_rack.services import database, pondstack_services
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import CREDENTIALS, Identities

from .channel import Started
from .host import EmulatedHost
from .machine import OUTSIDE

NOVA = "/opt/nova"
COMPUTE = f"{NOVA}/bin/nova-compute"
STATE = "/var/lib/nova"
TABLE = "/mnt/device"
SETTLE_SECONDS = 600.0
"""For a service of an emulated host to serve, and for what it does in the background."""

LAUNCHER = """#!/opt/nova/bin/python
import sys
from nova.cmd.compute import main
sys.exit(main())
"""
# What an emulated host has otherwise than a host of the rack, whose nova-compute.conf comes before.
NOVA_COMPUTE = """
[DEFAULT]
my_ip = 10.0.2.15
resume_guests_state_on_host_boot = true
# Its first update of Placement may be lost: see the rack's wait_for_pool.
update_resources_interval = 15
log_file = /var/log/nova-compute.log
[placement]
endpoint_override = {placement}
[glance]
endpoint_override = {glance}
[neutron]
endpoint_override = {neutron}
[libvirt]
virt_type = kvm
cpu_mode = host-passthrough
num_pcie_ports = 4
[pondstack]
emulator =
"""
AGENT = """
[DEFAULT]
transport_url = {bus}
host = {host}
log_file = /var/log/pondstack-agent.log
[agent]
user =
state_dir = /var/lib/pondstack/agent
drivers = cxl
heartbeat_seconds = 3
# A small host, whose guest fits in only just.
mitigation_headroom_mib = 32
[cxl]
pools = 1:{serial}
permission_table = {table}
sanitize = host
[telemetry]
enabled = false
"""
QEMU = """
security_driver = "none"
stdio_handler = "file"
# This libvirt has QEMU restore from a file in a way that this QEMU refuses; what is compressed comes by a pipe.
save_image_format = "gzip"
"""
"""No virtlogd runs, and Debian's kernel has AppArmor without profiles here."""


class NovaHost:
    """The services of one emulated host, started over whatever an earlier boot left."""

    def __init__(self, host: EmulatedHost, rack: Rack) -> None:
        self.host, self.rack, self.name = host, rack, host.machine.name
        self.services: dict[str, Started] = {}

    def configure(self) -> None:
        """Write the files that an operator would."""
        host, layout = self.host, self.rack.layout
        values = config.common(layout, database.mariadb(layout), database.rabbitmq(layout))
        values["rabbit"] = config.template("rabbit.conf")
        values["credentials"] = CREDENTIALS
        values["nova_common"] = config.render("nova-common.conf", values)
        own = {"host": self.name, "file": "/etc/nova/nova-compute.conf", "directory": "/var/lib"}
        own["bus"] = database.rabbitmq(layout).transport_url(VHOST)
        own |= {"compute_driver": "pond.PondLibvirtDriver", "instances": f"{STATE}/instances", "root": STATE}
        own["privsep_helper"] = f"{NOVA}/bin/python -m oslo_privsep.daemon"
        host.put(own["file"], _outside(config.render("nova-compute.conf", {**values, **own})), mode=0o600)
        urls = {name: _outside(layout.url(name)) for name in ("placement", "glance", "neutron")}
        host.put("/etc/nova/host.conf", NOVA_COMPUTE.format(**urls))
        host.put(COMPUTE, LAUNCHER, mode=0o755)
        [virt] = host.run(["sh", "-c", f"echo {NOVA}/lib/python3*/site-packages/nova/virt"]).check().stdout.split()
        host.put(f"{virt}/{nova_link.NAME}", nova_link.TEXT)
        bus = _outside(database.rabbitmq(layout).transport_url(VHOST))
        agent = AGENT.format(bus=bus, host=self.name, serial=pondstack_services.SERIAL, table=TABLE)
        host.put("/etc/pondstack-agent.conf", agent + str(values["rabbit"]), mode=0o600)
        Identities(layout.credentials).install(host.put, f"agent/{self.name}", f"compute/{self.name}")
        host.put("/etc/libvirt/qemu.conf", QEMU)
        host.run(["mkdir", "-p", f"{STATE}/instances", f"{STATE}/nova"]).check()

    def start_libvirt(self) -> None:
        """Have KVM and libvirtd run, with the memory policy that systemd would give it (`NUMAPolicy=bind`)."""
        script = "modprobe kvm_amd; chgrp kvm /dev/kvm; chmod 660 /dev/kvm; mkdir -p /run/libvirt"
        self.host.run(["sh", "-ec", script]).check()
        self.services["libvirtd"] = self.host.start(["numactl", "--membind=0", "libvirtd"])
        self.host.wait_for_path("/run/libvirt/libvirt-sock")

    def start_agent(self) -> None:
        """Start the agent."""
        self.services["agent"] = self.host.start(["pondstack-agent", "--config-file", "/etc/pondstack-agent.conf"])

    def start_compute(self) -> None:
        """Start nova-compute."""
        files = ["--config-file", "/etc/nova/nova-compute.conf", "--config-file", "/etc/nova/host.conf"]
        self.services["compute"] = self.host.start([COMPUTE, *files])

    def wait_agent(self) -> None:
        """Wait until the agent serves, as systemd does: what guests had before a boot is online again by then."""
        self.eventually(lambda: f"Agent of host {self.name} serves" in self.log("pondstack-agent"), "no agent serves")

    def wait_compute(self) -> None:
        """Wait until nova-compute serves."""
        self.eventually(lambda: has_consumer(self.rack.layout, f"compute.{self.name}"), "nova-compute does not serve")

    def wait_placeable(self) -> None:
        """Wait until the scheduler may place guests with pool memory here."""
        cloud.discover_hosts(self.rack.layout)
        pondstack_services.wait_for_pool(self.rack.layout, {self.name}, SETTLE_SECONDS)

    def hold_base_slice(self) -> None:
        """Have the host hold a slice that keeps the pool's node online; returns once it is."""
        memory = Cloud.of_rack(self.rack.layout.root).memory

        def shown() -> dict[str, Any]:
            return dict(memory.get(f"/hosts/{self.name}", microversion="1.11").json())

        self.eventually(
            lambda: memory.get("/hosts").json()["hosts"] != [] and shown()["pools"] != [], "the agent reports no pool"
        )
        self.openstack("memory", "host", "set", self.name, "--base-slices", "1")
        self.eventually(
            lambda: [held["online"] for held in shown()["host_slices"]] == [1], "no base slice comes online"
        )

    def openstack(self, *words: str) -> str:
        """Run a command as the operator does; return what it shows."""
        environment = os.environ | read_openrc(self.rack.layout.root / "openrc")
        command = [program("openstack"), *words]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SETTLE_SECONDS, check=False
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def log(self, service: str) -> str:
        """Return a service's log of this boot; it may not have begun one."""
        return str(self.host.run(["cat", f"/var/log/{service}.log"]).stdout)

    def domain(self, server: str) -> Element:
        """Return libvirt's XML of a running guest."""
        return ElementTree.fromstring(self.host.run(["virsh", "-q", "dumpxml", server]).check().stdout)

    def console(self, server: str) -> str:
        """Return what a guest wrote on its console since `clear_console`."""
        return str(self.host.get(f"{STATE}/instances/{server}/console.log").decode(errors="replace"))

    def clear_console(self, server: str) -> None:
        """Forget what a guest of an earlier boot wrote."""
        self.host.run(["truncate", "-s", "0", f"{STATE}/instances/{server}/console.log"]).check()

    def pages(self, server: str) -> dict[frozenset[int], Counter[int]]:
        """Return where the pages of a guest's QEMU lie: by the nodes that their policy names, pages on each node."""
        [pid] = self.host.run(["pgrep", "-f", f"^[^ ]*qemu-system.* -uuid {server}"]).check().stdout.split()
        maps, numa_maps = (self.host.get(f"/proc/{pid}/{name}").decode() for name in ("maps", "numa_maps"))
        found: dict[frozenset[int], Counter[int]] = defaultdict(Counter)
        for region in numa.parse(maps, numa_maps):
            found[region.policy_nodes].update(region.pages)
        return found

    def reboot(self) -> None:
        """Boot the host anew, what its services wrote is on its disk; none of them runs, and logs begin anew."""
        self.host.run(["sync"]).check()
        self.services.clear()
        self.host.reboot()
        self.host.run(["sh", "-ec", "for log in /var/log/*.log; do mv $log $log.1; done"]).check()

    def eventually(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Wait for a condition; fails with what the services here said."""
        if not wait_until(condition, SETTLE_SECONDS, 1.0):
            said = "\n".join(f"--- {name}\n{self._tail(name)}" for name in ("nova-compute", "pondstack-agent"))
            raise AssertionError(f"{otherwise}\nlogs of the rack: {self.rack.layout.log}\n{said}")

    def _tail(self, name: str) -> str:
        return self.host.run(["tail", "-n", "60", f"/var/log/{name}.log"]).stdout


def _outside(text: str) -> str:
    """Return addresses of this machine's loopback as an emulated host sees them."""
    return text.replace(LOOPBACK, OUTSIDE)
