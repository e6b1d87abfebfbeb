"""Two controllers as processes, on real RabbitMQ and MariaDB: kill -9, a pause beyond the lease, hand-over, restart.

A client of ours is all that talks to them: what it is told by one leader must hold with the next.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psutil
import pytest
from oslo_config import cfg

from pondstack.cmd import manage
from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.devices.emulated import create_device
from pondstack.devices.identity import pool_uuid
from pondstack.domain.errors import Conflict, NotFound, NotLeader, PoolShortage, SlicesReturning
from pondstack.domain.requests import AssignRequest
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.wire import Attached
from pondstack_rack.daemon import Daemon
from pondstack_rack.wait import wait_until
from tests.fixtures.bus_host import BusHost
from tests.fixtures.identities import Identities

pytestmark = pytest.mark.functional

SLICES = 8
ANSWER_SECONDS = 60.0
LEASE_SECONDS = 6.0
"""Five times the default: a machine that stands still for a moment must not end the lease in the middle of a test."""

PROGRAM = Path(sys.executable).parent / "pondstack-controller"

CONFIGURATION = """
[DEFAULT]
transport_url = {bus}
[database]
connection = {database}
[placement]
enabled = false
[controller]
name = {name}
pool_devices = pool0=emulated:{device}
reconcile_interval_seconds = 1
[ha]
lease_seconds = {lease}
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
"""


class Pair(SimpleNamespace):
    """Two controllers by name, a client, and what agents would call."""

    def leader(self) -> str:
        """Wait for a leader that answers; return its name."""
        found = ""

        def leads() -> bool:
            nonlocal found
            found = next((item.name for item in self.reader.controllers() if item.role == "leader"), "")
            return bool(found)

        assert wait_until(leads, ANSWER_SECONDS)
        return found

    def other(self, name: str) -> str:
        return next(item for item in self.controllers if item != name)

    def stands_by(self, name: str) -> bool:
        return any(item.name == name and item.role == "standby" for item in self.reader.controllers())

    def beat(self, host: str, attached: tuple[Attached, ...] = ()) -> dict[str, Any]:
        self.hosts[host].hold(*attached)
        return self.api.heartbeat(self.hosts[host].look())

    def assign(self, operation_id: str, consumer: str, host: str = "h1", slices: int = 2) -> Any:
        return self.api.assign(operation_id, AssignRequest(consumer, host, self.pool, slices * 1024, guest_mib=8192))

    def acknowledge(self, grant: Any) -> None:
        self.api.acknowledge(operation_id=str(uuid4()), allocation_uuid=grant.allocation_uuid, host=grant.host)

    def release(self, grant: Any) -> None:
        self.hosts[grant.host].let_go(grant.allocation_uuid)
        self.api.release(operation_id=str(uuid4()), allocation_uuid=grant.allocation_uuid, host=grant.host)

    def room(self, slices: int = 2) -> bool:
        return wait_until(lambda: self.reader.pool(self.pool).slices["free"] >= slices, 30)

    def all_free(self) -> bool:
        return self.room(SLICES)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a controller with all its processes, the youngest first."""
        process = self.controllers[name].process
        for member in [*process.children(recursive=True), process]:
            member.send_signal(number)

    def paused(self, name: str) -> bool:
        process = self.controllers[name].process
        return all(m.status() == psutil.STATUS_STOPPED for m in [process, *process.children(recursive=True)])

    def log(self, name: str) -> str:
        return self.controllers[name].log_file.read_text(errors="replace")


@pytest.fixture
def pair(tmp_path: Path, rabbitmq: Any, mariadb_url: str) -> Iterator[Pair]:
    device = create_device(tmp_path / "pool0", SLICES)
    bus = rabbitmq.transport_url(f"failover-{uuid4().hex[:8]}")
    controllers = {}
    identities = Identities(tmp_path / "credentials")
    for name in ("one", "two"):
        path = tmp_path / f"{name}.conf"
        values = {"bus": bus, "database": mariadb_url, "device": device.path, "lease": LEASE_SECONDS}
        path.write_text(CONFIGURATION.format(name=name, **values) + identities.section(f"controller/{name}"))
        controllers[name] = Daemon(name, [str(PROGRAM), "--config-file", str(path)], tmp_path)
    assert manage.run(["--config-file", str(path), "db", "sync"]) == 0
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(path)], project="pondstack")
    client = identities.everybody(conf)
    database = Database.from_conf(conf)
    pool = pool_uuid(device.info().serial)
    made = Pair(
        controllers=controllers,
        api=ControllerAPI(client, timeout_seconds=ANSWER_SECONDS),
        reader=SqlReader(database),
        device=device,
        pool=pool,
        hosts={name: BusHost(name, client, pool) for name in ("h1", "h2")},
    )
    for controller in controllers.values():
        controller.launch()
    try:
        made.beat("h1")
        made.beat("h2")
        assert wait_until(lambda: made.stands_by(made.other(made.leader())), ANSWER_SECONDS)
        yield made
    finally:
        for controller in controllers.values():
            if controller.running:
                made.signal(controller.name, signal.SIGCONT)
            controller.stop()
        for host in made.hosts.values():
            host.close()
        client.cleanup()
        database.dispose()


class Traffic:
    """Assigns, repeats and releases until it is stopped; every answer is checked, every gap is measured."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answered_at: list[float] = []
        self.wrong: list[str] = []

    def __enter__(self) -> "Traffic":
        self._thread.start()
        assert wait_until(lambda: len(self.answered_at) >= 3, ANSWER_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(2 * ANSWER_SECONDS)
        assert not self._thread.is_alive()
        assert not self.wrong

    def go_on(self, after: float, count: int = 3) -> None:
        """Wait until so many rounds have ended that ended after a moment."""
        assert wait_until(lambda: len([at for at in self.answered_at if at > after]) >= count, 2 * ANSWER_SECONDS)

    def gap_seconds(self, after: float) -> float:
        """Return the time from a moment to the first round that ended after it."""
        return min(at for at in self.answered_at if at > after) - after

    def _assign(self, operation_id: str, consumer: str) -> Any:
        """Assign when there is room: while the slices of former rounds are zeroed, a full pool is a right answer."""
        while True:
            try:
                return self._pair.assign(operation_id, consumer)
            except (PoolShortage, SlicesReturning):
                if not self._pair.room():
                    raise

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                operation_id, consumer = str(uuid4()), str(uuid4())
                grant = self._assign(operation_id, consumer)
                same = self._pair.assign(operation_id, consumer)
                if (same.allocation_uuid, same.extents) != (grant.allocation_uuid, grant.extents):
                    self.wrong.append(f"operation {operation_id} was granted twice")
                self._pair.acknowledge(grant)
                self._pair.release(grant)
            except Exception as error:  # noqa: BLE001 - whoever waits reads it
                self.wrong.append(repr(error))
                return
            self.answered_at.append(time.monotonic())


def test_one_leads_and_the_other_follows(pair: Pair) -> None:
    leader = pair.leader()
    grant = pair.assign(str(uuid4()), str(uuid4()))
    assert wait_until(
        lambda: next(item.lag for item in pair.reader.controllers() if item.name != leader) == 0, ANSWER_SECONDS
    )
    listed = {item["name"]: item["role"] for item in pair.api.controllers()}
    assert listed == {leader: "leader", pair.other(leader): "standby"}
    for _ in range(4):  # whichever of them is asked
        assert wait_until(
            lambda: pair.api.snapshot(timeout_seconds=5).pools[0].free_slices == SLICES - 2, ANSWER_SECONDS
        )
    assert grant.epoch == pair.api.snapshot(timeout_seconds=30).epoch


def test_kill_9_under_load_loses_nothing(pair: Pair) -> None:
    """The other one answers by itself, once for each operation, and the killed one stands by when it is back."""
    leader = pair.leader()
    operation_id, consumer = str(uuid4()), str(uuid4())
    before = pair.assign(operation_id, consumer)
    with Traffic(pair) as traffic:
        killed = time.monotonic()
        pair.controllers[leader].kill()
        traffic.go_on(killed)
    print(f"writes resumed {traffic.gap_seconds(killed):.2f} s after kill -9")
    assert pair.leader() == pair.other(leader)
    after = pair.assign(operation_id, consumer)
    assert (after.allocation_uuid, after.extents) == (before.allocation_uuid, before.extents)
    assert after.epoch > before.epoch
    pair.controllers[leader].launch()
    assert wait_until(lambda: pair.stands_by(leader), ANSWER_SECONDS)
    pair.release(after)
    assert pair.all_free()
    assert pair.device.permissions() == {}


def test_a_pause_beyond_the_lease(pair: Pair) -> None:
    """The paused leader wakes into a world that has gone on: it writes nothing, and stands by."""
    leader = pair.leader()
    epoch = pair.reader.leader().epoch
    with Traffic(pair) as traffic:
        pair.signal(leader, signal.SIGSTOP)
        assert wait_until(lambda: pair.paused(leader), ANSWER_SECONDS)
        paused = time.monotonic()
        traffic.go_on(paused)
        assert pair.leader() == pair.other(leader)
        newer = pair.reader.leader().epoch
        assert newer > epoch
        woken = time.monotonic()
        pair.signal(leader, signal.SIGCONT)
        assert wait_until(lambda: "Standing by again" in pair.log(leader), ANSWER_SECONDS)
        traffic.go_on(woken)
    print(f"writes resumed {traffic.gap_seconds(paused):.2f} s after SIGSTOP")
    assert pair.controllers[leader].running
    assert wait_until(lambda: pair.stands_by(leader), ANSWER_SECONDS)
    assert pair.leader() == pair.other(leader)
    assert pair.reader.leader().epoch == newer
    assert pair.all_free()
    assert all(item.epoch >= newer for item in pair.device.permissions().values())


def test_a_hand_over_by_command_and_back(pair: Pair) -> None:
    first = pair.leader()
    second = pair.other(first)
    with pytest.raises(NotFound):
        pair.api.failover(leader=first, to="three")
    with pytest.raises(Conflict):
        pair.api.failover(leader=first, to=first)
    with pytest.raises(NotLeader):
        pair.api.failover(leader=second, to=first)
    with Traffic(pair) as traffic:
        for leader, to in ((first, second), (second, None)):
            told = time.monotonic()
            pair.api.failover(leader=leader, to=to)
            assert wait_until(lambda leader=leader: pair.leader() == pair.other(leader), ANSWER_SECONDS)
            traffic.go_on(told)
            assert wait_until(lambda leader=leader: pair.stands_by(leader), ANSWER_SECONDS)
            print(f"writes resumed {traffic.gap_seconds(told):.2f} s after a hand-over")
    assert pair.leader() == first
    assert all(controller.running for controller in pair.controllers.values())
    assert pair.all_free()


def test_sigterm_hands_the_lease_over(pair: Pair) -> None:
    leader = pair.leader()
    with Traffic(pair) as traffic:
        told = time.monotonic()
        pair.controllers[leader].stop()
        stopped = time.monotonic()
        traffic.go_on(told)
    print(f"stopped in {stopped - told:.2f} s, writes resumed {traffic.gap_seconds(told):.2f} s after SIGTERM")
    roles = {item.name: item.role for item in pair.reader.controllers()}
    assert roles == {leader: "down", pair.other(leader): "leader"}
    assert pair.all_free()


def test_alone_it_leads_again_after_its_own_restart(pair: Pair) -> None:
    leader = pair.leader()
    pair.controllers[pair.other(leader)].stop()
    grant = pair.assign(str(uuid4()), str(uuid4()))
    pair.controllers[leader].restart()
    pair.release(grant)
    assert pair.leader() == leader
    assert pair.all_free()
