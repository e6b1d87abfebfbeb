"""An emulated host whose agent lends and sleeps; each of its services has a control group, as under systemd."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from oslo_config import cfg

from pondstack.domain.errors import Unavailable
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.waker_api import WakerAPI
from pondstack_agent.power.program import WAKER
from pondstack_rack.servers import LOOPBACK, RabbitMQServer
from pondstack_rack.wait import wait_until
from pondstack_rdma.model import Key, Ticket
from tests.fixtures.identities import Identities

from .channel import Started
from .host import EmulatedHost
from .machine import OUTSIDE

GROUPS = "/sys/fs/cgroup"
LAUNCHER = "/usr/local/bin/in-group"
IN_GROUP = f"""#!/bin/sh
# in-group GROUP COMMAND...: as `systemd-run --scope --slice GROUP COMMAND...` would start it.
mkdir -p "{GROUPS}/$1" && echo $$ >"{GROUPS}/$1/cgroup.procs" && shift && exec "$@"
"""
TENANT = "i=0; while :; do i=$((i + 1)); echo $i >/run/tenant.new; mv /run/tenant.new /run/tenant; sleep 0.2; done"
"""Who does nothing but count."""

STATE = "/var/lib/pondstack/agent"
AGENT = """
[DEFAULT]
transport_url = {bus}
host = {host}
[agent]
user =
state_dir = {state}
drivers =
heartbeat_seconds = 3
[lending]
transport = verbs
transport_options = host:{address}
launcher = {launcher} lender
buffer_mib = {buffer_mib}
reserve_mib = 0
pressure_mib = 0
lender_timeout_seconds = 240
[power]
launcher = {launcher} waker
waker_timeout_seconds = 240
[telemetry]
enabled = false
"""
BUFFER_MIB = 8
CALL_SECONDS = 240.0
"""For an answer: an emulated host on a busy machine starts a process of Python in as much as a minute."""

HASTE_SECONDS = 5.0
"""For an answer of a process that is there, if the host is awake."""

EPOCH = 1


class SleepingHost:
    """One host with an RDMA device, whose agent answers on `rabbitmq`; `folder`: for credentials."""

    def __init__(self, host: EmulatedHost, address: str, rabbitmq: RabbitMQServer, identities: Identities) -> None:
        self.host, self.name = host, host.machine.name
        self._address, self._rabbitmq, self._identities = address, rabbitmq, identities
        conf = cfg.ConfigOpts()
        conf([], project="pondstack")
        self.bus = identities.everybody(conf, rabbitmq.transport_url("power"))
        self.agents = AgentAPI(self.bus, timeout_seconds=CALL_SECONDS, monitor_seconds=int(CALL_SECONDS))
        self.hasty = AgentAPI(self.bus, timeout_seconds=HASTE_SECONDS, monitor_seconds=int(HASTE_SECONDS))
        self.wakers = WakerAPI(self.bus, HASTE_SECONDS)

    def start(self) -> None:
        """Start its agent, and a process of somebody else, and wait until both go on."""
        host = self.host
        host.put(LAUNCHER, IN_GROUP, mode=0o755)
        bus = self._rabbitmq.transport_url("power").replace(LOOPBACK, OUTSIDE)
        values = {"state": STATE, "launcher": LAUNCHER, "buffer_mib": BUFFER_MIB, "address": self._address}
        host.put("/etc/pondstack-agent.conf", AGENT.format(bus=bus, host=self.name, **values), mode=0o600)
        self._identities.install(host.put, f"agent/{self.name}")
        self._start("tenant", "sh", "-c", TENANT)
        agent = self._start("agent", "pondstack-agent", "--config-file", "/etc/pondstack-agent.conf")
        agent.wait_for("serves", CALL_SECONDS)
        host.wait_for_path("/run/tenant")

    def _start(self, group: str, *command: str) -> Started:
        started: Started = self.host.start([LAUNCHER, group, *command])
        return started

    def lend(self, mib: int, borrower: str) -> tuple[Ticket, list[Key]]:
        """Have its agent lend so much, and a borrower have the keys."""
        self.agents.lend(self.name, epoch=EPOCH, operation_id=str(uuid4()), mib=mib, kind="zombie")
        assert wait_until(lambda: self._lent_mib() == mib, CALL_SECONDS), self.agents.get_lending(self.name)
        indexes = range(mib // BUFFER_MIB)
        answer = self.agents.export(self.name, epoch=EPOCH, indexes=list(indexes), borrower=borrower)
        return Ticket.from_dict(answer["ticket"]), [Key.from_dict(answer["keys"][str(index)]) for index in indexes]

    def _lent_mib(self) -> int:
        try:
            return int(self.agents.get_lent(self.name).mib)
        except Unavailable:  # its lender is about to start
            return 0

    def counted(self) -> int:
        """Return how far the other process has come."""
        return int(self.host.get("/run/tenant"))

    def groups(self) -> dict[str, bool]:
        """Return which groups stand still."""
        words = self.host.run(["sh", "-c", f"cd {GROUPS}; grep -H frozen */cgroup.events"]).check().stdout.split("\n")
        return {line.partition("/")[0]: line.endswith(" 1") for line in words if line}

    def stands_still(self) -> bool:
        """Return whether all that is not to serve is frozen, and one CPU is left."""
        return self._cpus() == "0" and self.groups() == {"agent": True, "tenant": True, "lender": False, "waker": False}

    def is_whole(self) -> bool:
        """Return whether it has its CPUs, and nothing of it is frozen."""
        return self._cpus() == "0-1" and not any(self.groups().values())

    def _cpus(self) -> str:
        return bytes(self.host.get("/sys/devices/system/cpu/online")).decode().strip()

    @contextmanager
    def without_bus(self) -> Iterator[None]:
        """Have it reach no broker in the block; its RDMA device has a wire of its own."""
        self.host.run(["ip", "route", "add", "blackhole", OUTSIDE]).check()
        try:
            yield
        finally:
            self.host.run(["ip", "route", "del", "blackhole", OUTSIDE]).check()

    def said_by_waker(self) -> str:
        """Return the log of its waker."""
        return bytes(self.host.get(f"{STATE}/waker/{WAKER.log}")).decode(errors="replace")

    def kill_waker(self) -> None:
        """Have its waker die, as the kernel's out-of-memory killer would have it."""
        self.host.run(["sh", "-ec", f"kill -9 $(cat {GROUPS}/waker/cgroup.procs)"]).check()

    def close(self) -> None:
        """Leave the bus."""
        self.bus.cleanup()
