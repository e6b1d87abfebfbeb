"""The two hosts and the guest that plans move to and fro, as Nova, libvirt, the ledger and the processes have them."""

from contextlib import suppress
from typing import Any

import psutil
from keystoneauth1.exceptions import ClientException

from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.plan import Plan
from pondstack.ledger.records import HostRecord
from pondstack_rack.demo import demo
from pondstack_rack.demo.operator import Operator
from pondstack_rack.demo.verified_guest import SLOTS, VerifiedGuest
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until
from tests.robustness.domain_state import domain_state
from tests.robustness.left_by_nova import LeftByNova
from tests.robustness.mitigations.rack import Processes
from tests.robustness.plans.judge import HostSeen, Seen

GONE_SECONDS = 180.0


class Hosts:
    """Of one rack. The guest has memory of the pool, and verifies what it wrote."""

    def __init__(self, rack: Rack, processes: Processes, left: LeftByNova) -> None:
        self._rack, self._processes, self.left = rack, processes, left
        self._operator = Operator(rack, lambda _: None)
        self.names = rack.layout.libvirt_hosts
        self._guest: VerifiedGuest | None = None

    @property
    def has_guest(self) -> bool:
        """Whether there is one."""
        return self._guest is not None

    @property
    def guest(self) -> VerifiedGuest:
        """The guest, which is booted, and has written all that it verifies, where there is none."""
        if self._guest is None:
            tenant = self._rack.connection(keystone.TENANT)
            facts = demo.run(self._rack.layout, self._rack.connection(), tenant, lambda _: None)
            self._guest = VerifiedGuest(self._rack, facts.server)
            self._guest.beat(SLOTS + 1)
        return self._guest

    def forget(self) -> None:
        """Delete the guest; the next one is another."""
        if self._guest is not None:
            server, self._guest = self._guest.server, None
            self.left.cloud.delete_server(server)
            wait_until(lambda: not self._is_there(server), GONE_SECONDS, 0.5)

    def _is_there(self, server: str) -> bool:
        with suppress(ClientException):
            return server in {item["id"] for item in self.left.cloud.servers("")}
        return True

    def sleeping(self) -> str:
        """Return the host whose sleep has not ended, "": none."""
        open_ones = [
            name
            for name in self._rack.layout.all_hosts
            if (found := self.host(name).sleep) is not None and found.is_open
        ]
        return open_ones[0] if open_ones else ""

    def host(self, name: str) -> HostRecord:
        """Return a host as the ledger has it; raises PondError."""
        return self._processes.reader.host(name)

    def stands_still(self, service: str) -> bool:
        """Whether a host's process is stopped, as all are on a host that sleeps."""
        process: Any = getattr(self._rack.service(service), "process", None)
        return process is not None and process.status() == psutil.STATUS_STOPPED

    def look(self, plan: Plan, sleeper: str, other: str) -> Seen:
        """Look at everything. Raises ClientException, PondError."""
        found = self.left.cloud.nova.get(f"/servers/{self.guest.server}").json()["server"]
        domains = {name: domain_state(self._rack.layout, name, self.guest.server) for name in self.names}
        return Seen(
            plan,
            self._seen(sleeper),
            self._seen(other),
            found["status"],
            found["OS-EXT-STS:task_state"] or "",
            found["OS-EXT-SRV-ATTR:hypervisor_hostname"],
            {name: state for name, state in domains.items() if state},
            self._claimed_mib(),
        )

    def _claimed_mib(self) -> dict[str, int]:
        names = {provider: name for name, provider in self.left.providers.items()}
        claims = self.left.cloud.claimed(self.guest.server)
        return {names[uuid]: item[MEMORY_CLASS] for uuid, item in claims.items() if uuid in names}

    def _seen(self, name: str) -> HostSeen:
        record = self.host(name)
        sleep = record.sleep.state if record.sleep else None
        shown = self._operator.host(name)
        return HostSeen(
            self._operator.service(name), sleep, shown["lending"]["lent_mib"], *self._operator.stopped(name)
        )
