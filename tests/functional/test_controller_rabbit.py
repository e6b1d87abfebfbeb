"""pondstack-controller as a process, on real RabbitMQ and MariaDB: round trip, kill -9, restarts of both servers."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import oslo_messaging
import pytest
from oslo_config import cfg

from pondstack.cmd import manage
from pondstack.devices.emulated import create_device
from pondstack.devices.identity import pool_uuid
from pondstack.domain.errors import PoolShortage, Unavailable
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import Attached
from pondstack_rack.daemon import Daemon
from pondstack_rack.wait import Deadline, wait_until
from tests.fixtures.bus_host import BusHost
from tests.fixtures.identities import Identities

pytestmark = pytest.mark.functional

SLICES = 8
ANSWER_SECONDS = 60.0
PROGRAM = Path(sys.executable).parent / "pondstack-controller"

CONFIGURATION = """
[DEFAULT]
transport_url = {bus}
[database]
connection = {database}
[placement]
enabled = false
[controller]
pool_devices = pool0=emulated:{device}
reconcile_interval_seconds = 1
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
"""


class Rack(SimpleNamespace):
    """The controller's process, a client, and what an agent would call."""

    def persist(self, call: Callable[[], Any], seconds: float = ANSWER_SECONDS) -> Any:
        """Repeat a call as every client does, with the same operation id, until it is answered.

        Until there is room, too: a full pool is a right answer while the slices of former rounds are zeroed.
        """
        deadline = Deadline(seconds)
        while True:
            try:
                return call()
            except (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure, Unavailable, PoolShortage):
                if deadline.over:
                    raise
                deadline.pause()

    def beat(self, host: str, attached: tuple[Attached, ...] = ()) -> dict[str, Any]:
        self.hosts[host].hold(*attached)
        return self.persist(lambda: self.api.heartbeat(self.hosts[host].look()))

    def assign(self, operation_id: str, consumer: str, host: str = "h1", slices: int = 2) -> Any:
        request = AssignRequest(consumer, host, self.pool, slices * 1024, guest_mib=8192)
        return self.persist(lambda: self.api.assign(operation_id, request))

    def acknowledge(self, grant: Any) -> None:
        uuid = str(uuid4())
        self.persist(
            lambda: self.api.acknowledge(operation_id=uuid, allocation_uuid=grant.allocation_uuid, host=grant.host)
        )

    def release(self, grant: Any) -> None:
        uuid = str(uuid4())
        self.hosts[grant.host].let_go(grant.allocation_uuid)
        self.persist(
            lambda: self.api.release(operation_id=uuid, allocation_uuid=grant.allocation_uuid, host=grant.host)
        )

    def free(self) -> int:
        view = self.persist(lambda: self.api.snapshot(timeout_seconds=5))
        return view.pools[0].free_slices

    def all_free(self) -> bool:
        return wait_until(lambda: self.free() == SLICES, 30)


@pytest.fixture
def rack(tmp_path: Path, rabbitmq: Any, mariadb: Any, mariadb_url: str) -> Iterator[Rack]:
    device = create_device(tmp_path / "pool0", SLICES)
    path = tmp_path / "pondstack.conf"
    path.write_text(
        CONFIGURATION.format(
            bus=rabbitmq.transport_url(f"controller-{uuid4().hex[:8]}"), database=mariadb_url, device=tmp_path / "pool0"
        )
    )
    identities = Identities(tmp_path / "credentials")
    with path.open("a") as file:
        file.write(identities.section(f"controller/{socket.gethostname()}"))
    assert manage.run(["--config-file", str(path), "db", "sync"]) == 0
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(path)], project="pondstack")
    bus = identities.everybody(conf)
    pool = pool_uuid(device.info().serial)
    made = Rack(
        controller=Daemon("pondstack-controller", [str(PROGRAM), "--config-file", str(path)], tmp_path),
        api=ControllerAPI(bus, timeout_seconds=5),
        device=device,
        pool=pool,
        hosts={name: BusHost(name, bus, pool) for name in ("h1", "h2")},
        rabbitmq=rabbitmq,
        mariadb=mariadb,
    )
    made.controller.launch()
    try:
        made.beat("h1")
        made.beat("h2")
        yield made
    finally:
        made.controller.stop()
        for host in made.hosts.values():
            host.close()
        bus.cleanup()


def test_two_hosts_and_a_round_trip(rack: Rack) -> None:
    """Register by heartbeat, assign, acknowledge, release; the slices come back clean."""
    first = rack.assign(str(uuid4()), "vm1", "h1", 3)
    second = rack.assign(str(uuid4()), "vm2", "h2", 4)
    assert {entry.host for entry in rack.device.permissions().values()} == {"h1", "h2"}
    rack.acknowledge(first)
    rack.acknowledge(second)
    audit = rack.api.audit(repair=False)
    assert audit["totals"]["slices_online"] == 7
    rack.release(first)
    rack.release(second)
    assert rack.all_free()
    assert rack.device.permissions() == {}


def test_kill_between_assign_and_acknowledge(rack: Rack) -> None:
    """Nothing is lost: the same operation gets the same slices from the new process, with a higher epoch."""
    operation_id, consumer = str(uuid4()), str(uuid4())
    before = rack.assign(operation_id, consumer)
    rack.controller.kill()
    rack.controller.launch()
    after = rack.assign(operation_id, consumer)
    assert (after.allocation_uuid, after.extents) == (before.allocation_uuid, before.extents)
    assert after.epoch > before.epoch
    rack.acknowledge(after)
    held = Attached(after.allocation_uuid, consumer, rack.pool, after.extents, in_use=True)
    rack.beat("h1", (held,))
    assert rack.api.audit(repair=False)["totals"]["slices_online"] == 2
    rack.release(after)
    rack.beat("h1")
    assert rack.all_free()


def test_kill_while_slices_wait_to_be_sanitised(rack: Rack) -> None:
    """The new process finishes what the old one began."""
    grants = [rack.assign(str(uuid4()), f"vm{number}", slices=4) for number in range(2)]
    for grant in grants:
        rack.release(grant)
    rack.controller.kill()
    rack.controller.launch()
    assert rack.all_free()


@pytest.mark.parametrize("server", ["rabbitmq", "mariadb"])
def test_a_restart_in_the_middle_is_answered_once(rack: Rack, server: str) -> None:
    """Calls go on while the broker or the database restarts; each is answered, and each took effect once."""
    over = threading.Event()
    answered: list[bool] = []

    def work() -> None:
        while not over.is_set():
            operation_id, consumer = str(uuid4()), str(uuid4())
            grant = rack.assign(operation_id, consumer)
            same = rack.assign(operation_id, consumer)
            rack.release(grant)
            answered.append(same.allocation_uuid == grant.allocation_uuid)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert wait_until(lambda: len(answered) >= 1, ANSWER_SECONDS)
        getattr(rack, server).restart()
        after = len(answered)
        # The first of these two may have been under way; the second began after the restart.
        assert wait_until(lambda: len(answered) >= after + 2, 2 * ANSWER_SECONDS)
    finally:
        over.set()
        worker.join(2 * ANSWER_SECONDS)
    assert not worker.is_alive()
    assert all(answered)
    assert rack.all_free()
    assert rack.api.audit(repair=False)["totals"]["allocations"] == 0


def test_sigterm_ends_in_order(rack: Rack) -> None:
    """A graceful stop ends the process within its time and loses nothing."""
    grant = rack.assign(str(uuid4()), str(uuid4()))
    rack.controller.stop()
    rack.controller.launch()
    rack.release(grant)
    assert rack.all_free()
