"""What RPC promises, on RabbitMQ and over RDMA beside it: the same tests, as it is the same API.

Over shared memory; in the emulated hosts of tests/hardware over their RDMA device, with a broker outside of them.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oslo_messaging
import pytest

from pondstack.domain.errors import PoolShortage, StaleEpoch
from pondstack.rpc import transport as rpc
from pondstack.rpc.retry import RetryingCaller, RetryPolicy
from pondstack_rack.wait import wait_until
from pondstack_rdma.fault import FaultPlan, FaultTransport
from pondstack_rdma.messaging import settings
from pondstack_rdma.shm import ShmTransport

from .bus_server import BusServer, bus_conf, journal_of, target

if TYPE_CHECKING:  # what the other servers need is not where a broker is given
    from pondstack_rack.servers import RabbitMQServer

pytestmark = pytest.mark.functional
SECONDS = 60.0
BROKER = "PONDSTACK_TEST_BROKER"
"""URL of a RabbitMQ for these tests, where none can be started."""

TRANSPORT = "verbs" if os.environ.get("PONDSTACK_TEST_VERBS") else "shm"
GOOD_BUSES = ("rabbit", "rdma") if TRANSPORT == "shm" else ("rdma",)
BUSES = (*GOOD_BUSES, "rdma-bad-link") if TRANSPORT == "shm" else GOOD_BUSES
BAD_LINK = FaultPlan(seed=11, lost=0.01, unanswered=0.01, broken=0.003, partial=0.003)


class Bus:
    """A broker's virtual host, servers on it, and a client."""

    def __init__(self, kind: str, url: str, folder: Path) -> None:
        self.rdma = kind.startswith("rdma")
        self._url, self._folder = url, folder
        self._topic = f"bus-{uuid.uuid4()}"
        journal_of(folder).touch()
        self.client = rpc.get_oslo_transport(self.conf())
        self._persisting = RetryingCaller(RetryPolicy())
        self._servers: list[BusServer] = []
        self._processes: list[subprocess.Popen[str]] = []

    def conf(self, transport: str = TRANSPORT) -> Any:
        return bus_conf(self._url, transport if self.rdma else "", str(self._folder))

    def serve(self, name: str = "one", conf: Any = None) -> BusServer:
        server = BusServer(conf or self.conf(), self._topic, name, self._folder)
        self._servers.append(server)
        return server

    def process(self, name: str = "one") -> subprocess.Popen[str]:
        words = [self._url, TRANSPORT if self.rdma else "", self._folder, self._topic, name]
        script = Path(__file__).with_name("bus_server.py")
        process = subprocess.Popen(
            [sys.executable, str(script), *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._processes.append(process)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        return process

    def call(self, method: str, *, timeout: float = SECONDS, monitor: int | None = None, **arguments: Any) -> Any:
        client = oslo_messaging.get_rpc_client(self.client, target(self._topic))
        return client.prepare(timeout=timeout, call_monitor_timeout=monitor).call({"who": "me"}, method, **arguments)

    def do(self, value: Any, operation_id: str | None = None, timeout: float = SECONDS) -> Any:
        return self.call("do", operation_id=operation_id or str(uuid.uuid4()), value=value, timeout=timeout)

    def insist(self, value: Any) -> dict[str, Any]:
        """Do it with the same operation id until there is an answer; that, with the id."""
        mine = str(uuid.uuid4())
        answer: dict[str, Any] = self._persisting.call(lambda seconds: self.do(value, mine, seconds), SECONDS)
        assert answer["value"] == value
        return answer | {"id": mine}

    def over_rdma(self) -> None:
        """Call until a call goes over RDMA, where it should."""
        if self.rdma:
            before = self.client._driver.answered
            assert wait_until(lambda: bool(self.insist(0)) and self.client._driver.answered > before, SECONDS, 0.02)

    def done(self) -> list[str]:
        return journal_of(self._folder).read_text().split()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()
        for server in self._servers:
            server.stop()
        self.client.cleanup()


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest) -> str:
    if given := os.environ.get(BROKER):
        return given
    rabbitmq: RabbitMQServer = request.getfixturevalue("rabbitmq")
    return rabbitmq.transport_url("bus-contract")


@pytest.fixture
def make_bus(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Bus]]:
    made = []

    def make(kind: str) -> Bus:
        oslo_messaging.set_transport_defaults("openstack")
        if kind == "rdma-bad-link":
            bad = FaultTransport(ShmTransport(tmp_path), BAD_LINK, pause=lambda _seconds: None)
            monkeypatch.setattr(settings, "load_transport", lambda *_named: bad)
        made.append(Bus(kind, url, tmp_path))
        return made[-1]

    yield make
    for bus in made:
        bus.close()


@pytest.fixture(params=BUSES)
def bus(request: pytest.FixtureRequest, make_bus: Callable[[str], Bus]) -> Bus:
    return make_bus(request.param)


@pytest.fixture(params=GOOD_BUSES)
def good_bus(request: pytest.FixtureRequest, make_bus: Callable[[str], Bus]) -> Bus:
    """One whose first call tells something: over a bad link any call may be lost."""
    return make_bus(request.param)


def test_values_errors_and_contexts_cross(good_bus: Bus) -> None:
    good_bus.serve()
    good_bus.over_rdma()
    for value in (None, 0, 1.5, "ümlaut", [1, [2]], {"a": {"b": None}}, "x" * 1000):
        answer = good_bus.do(value)
        assert (answer["by"], answer["value"], answer["context"]["who"]) == ("one", value, "me")
    with pytest.raises(PoolShortage, match="3 slices asked for") as shortage:
        good_bus.call("fail", kind="shortage")
    assert shortage.value.code == PoolShortage.code
    with pytest.raises(StaleEpoch):
        good_bus.call("fail", kind="epoch")
    with pytest.raises(ValueError, match="a bug"):
        good_bus.call("fail", kind="bug")
    with pytest.raises(oslo_messaging.RemoteError, match="NoSuchMethod"):
        good_bus.call("nothing")


def test_large_values_cross_both_ways(bus: Bus) -> None:
    bus.serve()
    bus.over_rdma()
    bus.insist(["pond" * 250_000])


def test_many_callers_at_once_get_their_own_answers(bus: Bus) -> None:
    bus.serve()
    bus.over_rdma()
    with ThreadPoolExecutor(16) as pool:
        ids = [answer["id"] for answer in pool.map(bus.insist, range(160))]
    assert set(ids) <= set(bus.done())


def test_a_call_ends_in_time_and_the_next_one_is_answered(good_bus: Bus) -> None:
    good_bus.serve()
    good_bus.over_rdma()
    mine = str(uuid.uuid4())
    with pytest.raises(oslo_messaging.MessagingTimeout):
        good_bus.call("slow", operation_id=mine, seconds=4.0, timeout=2.0)
    assert good_bus.do(1)["value"] == 1
    assert wait_until(lambda: mine in good_bus.done(), SECONDS, 0.02), "it is carried out all the same, once"
    assert good_bus.done().count(mine) == 1


def test_a_call_that_is_watched_outlives_its_watch(good_bus: Bus) -> None:
    good_bus.serve()
    good_bus.over_rdma()
    # There is a sign every four seconds; a machine that stands still for three more ends no watch of eight.
    assert good_bus.call("slow", operation_id="long", seconds=9.0, monitor=8) == "done"


def stopped(pid: int) -> bool:
    """Return whether all threads of a process are stopped: each stops by itself, after the signal was sent."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return {task.read_text().rpartition(")")[2].split()[0] for task in tasks} == {"T"}


def test_a_frozen_server_is_noticed_and_serves_again(good_bus: Bus) -> None:
    process = good_bus.process()
    good_bus.over_rdma()
    process.send_signal(signal.SIGSTOP)
    assert wait_until(lambda: stopped(process.pid), SECONDS, 0.02)
    mine = str(uuid.uuid4())
    with pytest.raises(oslo_messaging.MessagingTimeout):
        good_bus.call("do", operation_id=mine, value=1, monitor=2)
    process.send_signal(signal.SIGCONT)
    good_bus.insist(2)
    good_bus.over_rdma()
    if good_bus.rdma:
        assert mine not in good_bus.done(), "given up before it was begun: never begun"


def test_a_server_killed_and_started_again_loses_nothing_it_answered(good_bus: Bus) -> None:
    """Killed with -9 under calls."""
    bus = good_bus
    process = bus.process()
    bus.over_rdma()
    acknowledged: list[str] = []
    stop = threading.Event()

    def calls() -> None:
        while not stop.is_set():
            acknowledged.append(bus.insist(len(acknowledged))["id"])

    with ThreadPoolExecutor(3) as pool:
        callers = [pool.submit(calls) for _ in range(3)]
        assert wait_until(lambda: len(acknowledged) > 20, SECONDS, 0.02)
        process.kill()
        process.communicate()
        bus.process()
        seen = len(acknowledged)
        assert wait_until(lambda: len(acknowledged) > seen + 20, SECONDS, 0.02)
        stop.set()
        for caller in callers:
            caller.result(SECONDS)
    bus.over_rdma()
    done = bus.done()
    assert set(acknowledged) <= set(done)


def test_another_server_takes_over_without_an_error(good_bus: Bus) -> None:
    """As leaders do: the first stops, the second listens to the same topic. What nobody answered is repeated."""
    first = good_bus.serve("one")
    good_bus.over_rdma()
    by: list[str] = []
    stop = threading.Event()

    def calls() -> None:
        while not stop.is_set():
            by.append(good_bus.insist(1)["by"])

    with ThreadPoolExecutor(2) as pool:
        callers = [pool.submit(calls) for _ in range(2)]
        assert wait_until(lambda: by.count("one") > 20, SECONDS, 0.02)
        good_bus.serve("two")
        first.stop()
        good_bus._servers.remove(first)
        assert wait_until(lambda: by[-1:] == ["two"] and by.count("two") > 20, SECONDS, 0.02)
        stop.set()
        for caller in callers:
            caller.result(SECONDS)
    good_bus.over_rdma()


def test_a_server_without_rdma_is_called_over_the_broker(
    make_bus: Callable[[str], Bus], caplog: pytest.LogCaptureFixture
) -> None:
    bus = make_bus("rdma")
    bus.serve(conf=bus.conf(transport=""))
    with caplog.at_level(logging.INFO, logger="pondstack_rdma.messaging"):
        for number in range(10):
            bus.insist(number)
            assert wait_until(lambda: "over the broker" in caplog.text, SECONDS)
    assert bus.client._driver.answered == 0
    assert caplog.text.count("over the broker") == 1, "told once"


def test_a_ping_goes_over_the_broker(make_bus: Callable[[str], Bus]) -> None:
    """A controller learns by it whether it reaches the broker: an answer by another way would hide that it does not."""
    bus = make_bus("rdma")
    bus.serve()
    bus.over_rdma()
    before = bus.client._driver.answered
    bus.call("ping")
    assert bus.client._driver.answered == before
    bus.do(1)
    assert bus.client._driver.answered == before + 1


def test_a_server_that_listens_again_before_its_former_self_has_ended(make_bus: Callable[[str], Bus]) -> None:
    """As a controller that is elected again while its last leadership is still being put away."""
    bus = make_bus("rdma")
    first = bus.serve("one")
    bus.serve("one")
    first.stop()
    bus._servers.remove(first)
    bus.over_rdma()
