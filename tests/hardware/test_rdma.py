"""Remote memory between two emulated hosts, over soft-RoCE: what a lender's device does while its CPU does nothing."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.servers import LOOPBACK, RabbitMQServer
from pondstack_rack.wait import wait_until
from pondstack_rdma.model import Key, Ticket
from tests.fixtures.identities import Identities

from . import paged_guest
from .conftest import Hardware
from .figures import Figures
from .host import EmulatedHost
from .machine import OUTSIDE
from .rdma_hosts import ADDRESSES, set_up, two_hosts
from .sleep_keeper import Keeper, keeper
from .sleeping_host import BUFFER_MIB, SleepingHost

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1500)]
MIB = 2**20
TOTAL_MIB = int(os.environ.get("PONDSTACK_RDMA_MIB", "32"))
"""What is lent to a borrower and verified; `make hardware-rdma` lends 1 GiB."""

REGIONS = 16
PART_MIB = 16
"""So much is transferred by each call into a host, which has a deadline."""

LENDER_MIB = 768 + TOTAL_MIB
SLACK_MIB = min(64, TOTAL_MIB // 2)
"""By which available memory moves by itself."""

SEED = 20181
FORGERIES = 60
DEADLINE_SECONDS = 15.0
"""In which a borrower learns that its lender is suspended; nor may an access to one that serves take longer."""

NOTICED_SECONDS = DEADLINE_SECONDS + 5.0
"""A host under emulation, on a busy machine, may look at its clock so much too late."""

GROUP = "/sys/fs/cgroup/lender"
CPUS = "for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do echo {} >$cpu; done"
SUSPEND = "echo deep >/sys/power/mem_sleep; exec echo mem >/sys/power/state"
POWER_SECONDS = 240.0
"""For what an emulated host does in the background, on a busy machine."""

CALLS = 20
CALLS_SECONDS = 120.0
CALLS_SERVER = ["/opt/pondstack/bin/python", "-W", "ignore", "-m", "bench.rpc_server"]


@pytest.fixture(scope="module")
def hosts(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[EmulatedHost]]:
    """A lender and a borrower."""
    with two_hosts(hardware, tmp_path_factory.mktemp("rdma"), LENDER_MIB) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def lending(hosts: Sequence[EmulatedHost]) -> Any:
    """The lender's process."""
    return hosts[0].remote("tests.hardware.guest.rdma:Lending")


def borrow(hosts: Sequence[EmulatedHost], **how: Any) -> Any:
    """Connect a borrower."""
    return hosts[1].remote("tests.hardware.guest.rdma:Borrowing", **how)


@contextmanager
def frozen(host: EmulatedHost, pid: int) -> Iterator[None]:
    """Freeze a process; it must not have had a tick of CPU in the block."""
    host.run(
        ["sh", "-ec", f"mkdir -p {GROUP}; echo {pid} >{GROUP}/cgroup.procs; echo 1 >{GROUP}/cgroup.freeze"]
    ).check()
    host.run(["sh", "-c", f"until grep -q 'frozen 1' {GROUP}/cgroup.events; do sleep 0.05; done"], timeout=60).check()
    try:
        before = ticks(host, pid)
        yield
        assert ticks(host, pid) == before
    finally:
        host.run(["sh", "-ec", f"echo 0 >{GROUP}/cgroup.freeze"]).check()


def ticks(host: EmulatedHost, pid: int) -> list[str]:
    """Return the CPU time of a process, user and system."""
    return host.get(f"/proc/{pid}/stat").decode().rpartition(")")[2].split()[11:13]


def test_a_frozen_lender_serves_all_that_it_lent(hosts: Sequence[EmulatedHost], lending: Any, figures: Figures) -> None:
    before = lending.available_bytes()
    ticket, keys = "", []
    for _ in range(REGIONS):
        ticket, key = lending.lend("borrower", TOTAL_MIB * MIB // REGIONS)
        keys.append(key)
    borrower = borrow(hosts, ticket=ticket)
    borrower.open(keys)
    parts = max(TOTAL_MIB // PART_MIB, 1)
    with frozen(hosts[0], lending._process.pid):
        writing = sum(borrower.write_all(keys, SEED, part, parts) for part in range(parts))
        read = [borrower.read_all(keys, SEED + 1, part, parts) for part in range(parts)]
    reading, wrong = (sum(values) for values in zip(*read, strict=True))
    figures.add(f"{TOTAL_MIB} MiB to a frozen lender, random order", TOTAL_MIB / writing, "MiB/s")
    figures.add(f"{TOTAL_MIB} MiB from a frozen lender, random order", TOTAL_MIB / reading, "MiB/s")
    figures.add(f"{TOTAL_MIB} MiB from a frozen lender, in pieces", wrong, "wrong", "= 0")
    assert wrong == 0
    assert all([lending.revoke(key) for key in keys])
    for key in keys[:2]:
        assert borrower.error(key) == "KeyRevoked"
        borrower.open([])
    back = lending.available_bytes()
    figures.add("memory lent and had back", (back - before) / MIB + TOTAL_MIB, "MiB", f"of {TOTAL_MIB}")
    assert back > before - SLACK_MIB * MIB


def test_forgeries_are_refused_by_the_device(hosts: Sequence[EmulatedHost], lending: Any, figures: Figures) -> None:
    (ticket, key), (_, gone) = (lending.lend("thief", MIB) for _ in range(2))
    victims_ticket, victims_key = lending.lend("victim", MIB)
    going_ticket, going_key = lending.lend("busy", MIB)
    victim, thief = borrow(hosts, ticket=victims_ticket), borrow(hosts, ticket=ticket)
    victim.open([victims_key])
    (foreign,) = victim.regions()
    thief.open([gone])
    (revoked,) = thief.regions()
    lending.revoke(gone)
    content: dict[Key, str] = {each: lending.fill(each, seed) for seed, each in enumerate((key, victims_key))}
    busy = borrow(hosts, ticket=going_ticket)
    busy.start(going_key)
    print(f"seed {SEED}")
    kinds, served = thief.forge(key, foreign, revoked, SEED, FORGERIES)
    passes, wrong = busy.stop()
    print(kinds, f"another borrower went on for {passes} passes")
    figures.add("forged accesses, refused by the device", sum(kinds.values()) - served, "", f"of {FORGERIES}")
    assert served == 0
    assert len(kinds) == 6
    assert (passes > 0, wrong) == (True, 0)
    assert {each: lending.digest(each) for each in content} == content
    thief.open([key])
    assert thief.error(key) == ""


def test_the_end_of_a_lender_is_heard_of(hosts: Sequence[EmulatedHost], figures: Figures) -> None:
    """By the connection manager alone, while the borrower does nothing."""
    doomed = hosts[0].remote("tests.hardware.guest.rdma:Lending")
    ticket, _ = doomed.lend("heir", MIB)
    waiting = hosts[1].remote("tests.hardware.guest.rdma:Waiting", ticket=ticket)
    assert not waiting.ended(0)
    hosts[0].run(["kill", "-9", str(doomed._process.pid)]).check()
    begun = time.monotonic()
    assert waiting.ended(DEADLINE_SECONDS)
    figures.add("a killed lender is noticed", time.monotonic() - begun, "s", f"<= {DEADLINE_SECONDS:g}")


def test_pages_of_a_guest_come_from_a_lender_without_cpus(
    hosts: Sequence[EmulatedHost], lending: Any, figures: Figures, tmp_path: Path
) -> None:
    """It was frozen, and its CPUs but one were taken off, before the first byte was borrowed."""
    paged_guest.install(hosts[1], tmp_path)
    paged = paged_guest.start(hosts[1])
    lent = [lending.lend("borrower", paged_guest.LEASE_BYTES) for _ in range(paged_guest.LEASES)]
    keys = [lending.locate(key) for _, key in lent]
    paged.connect(lent[0][0], paged_guest.DEADLINE_MS)
    with frozen(hosts[0], lending._process.pid):
        hosts[0].run(["sh", "-ec", CPUS.format(0)]).check()
        assert hosts[0].get("/sys/devices/system/cpu/online") == b"0\n"
        paged.disclose(keys)
        paged.limit(paged_guest.LOCAL_MIB)
        view = paged_guest.await_store(paged, "lender_reads", paged_guest.PAGES)
        hosts[0].run(["sh", "-ec", CPUS.format(1)]).check()
    store, service = view["store"], view["service"]
    figures.add(
        "pages of a guest, from a lender without CPUs", store["lender_reads"], "pages", f">= {paged_guest.PAGES}"
    )
    figures.add("pages of that guest, from the mirror", store["mirror_reads"], "pages", "= 0")
    figures.add("its fault service, median (emulated)", service["p50_ns"] / 1e3, "us")
    assert (store["mirror_reads"], store["corrupt"]) == (0, 0)
    assert {lease["state"] for lease in view["leases"]} == {"active"}
    assert {lease["driver"] for lease in view["leases"]} == {"verbs"}
    paged.kill_data_plane()
    paged_guest.await_store(paged, "mirror_reads", paged_guest.PAGES)
    paged_guest.end(paged, figures)


def test_calls_cross_over_rdma_and_over_the_broker_while_the_wire_is_cut(
    hosts: Sequence[EmulatedHost], rabbitmq: RabbitMQServer, figures: Figures
) -> None:
    """Through oslo.messaging, as agents and controllers call; the broker is reached by another network."""
    words = [rabbitmq.transport_url("two-hosts").replace(LOOPBACK, OUTSIDE), "verbs", "/run", "calls"]
    server = hosts[0].start([*CALLS_SERVER, *words, f"host:{ADDRESSES[0]}"], env={"PYTHONPATH": "/opt/code"})
    names = dict(zip(("url", "driver", "folder", "topic"), words, strict=True))
    client = hosts[1].remote("bench.rpc_client:Client", **names, retry_seconds=0.5)
    server.wait_for("ready")
    assert client.reaches_rdma(CALLS_SECONDS), server.output()
    before = client.answered()
    for _ in range(CALLS):
        client.call()
    figures.add("calls between hosts, over RDMA", client.answered() - before, "", f"= {CALLS}")
    assert client.answered() == before + CALLS
    # Frames get lost, the carrier stays: an emulated device (rxe) that once could not send a datagram of the connection
    # manager connects nobody any more.
    hosts[0].cut_wire(True)
    before = client.answered()
    slowest = max(client.call() for _ in range(CALLS)) / 1e6
    figures.add("slowest call while the wire is cut", slowest, "s")
    assert client.answered() == before
    hosts[0].cut_wire(False)
    assert client.reaches_rdma(CALLS_SECONDS), "over RDMA again"
    client.close()
    server.write(close=True)
    assert server.wait() == 0


# The agent's power drivers: one S3 per boot is what emulation carries, and a reset comes last.


@pytest.fixture(scope="module")
def sleeper(
    hosts: Sequence[EmulatedHost], rabbitmq: RabbitMQServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SleepingHost]:
    """The lender's host, with an agent."""
    identities = Identities(tmp_path_factory.mktemp("sleeper"))
    with closing(SleepingHost(hosts[0], ADDRESSES[0], rabbitmq, identities)) as sleeper:
        sleeper.start()
        yield sleeper


@pytest.fixture(scope="module")
def ringing(hosts: Sequence[EmulatedHost]) -> Any:
    """What the borrower's agent rings for other hosts with."""
    return hosts[1].remote("tests.hardware.guest.rdma:Ringing")


@pytest.fixture(scope="module")
def leader(sleeper: SleepingHost, ringing: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    """What a controller has for it."""
    with keeper(sleeper, tmp_path_factory.mktemp("keeper"), ringing) as leader:
        yield leader


@pytest.fixture(scope="module")
def lent(sleeper: SleepingHost) -> tuple[Ticket, list[Key]]:
    """What the agent's lender lends to the borrower."""
    return sleeper.lend(2 * BUFFER_MIB, "borrower")


def test_a_host_in_lowpower_s0_serves_and_is_woken_over_the_bus(
    hosts: Sequence[EmulatedHost],
    sleeper: SleepingHost,
    leader: Keeper,
    lent: tuple[Ticket, list[Key]],
    figures: Figures,
) -> None:
    ticket, keys = lent
    borrower = borrow(hosts, ticket=ticket)
    borrower.open(keys)
    leader.sleep("lowpower-s0")
    assert wait_until(sleeper.stands_still, POWER_SECONDS), sleeper.groups()
    before = sleeper.counted()
    borrower.write_all(keys, SEED)
    reading, wrong = borrower.read_all(keys, SEED + 1)
    figures.add("from a host in lowpower-s0, random order", 2 * BUFFER_MIB / reading, "MiB/s")
    figures.add("from a host in lowpower-s0, in pieces", wrong, "wrong", "= 0")
    assert wrong == 0
    assert sleeper.counted() == before
    assert sleeper.stands_still()
    leader.wake()
    assert sleeper.is_whole()
    assert wait_until(lambda: sleeper.counted() > before, POWER_SECONDS)
    assert leader.bmc.orders == []
    assert borrower.read_all(keys, SEED + 2)[1] == 0


@pytest.mark.usefixtures("lent")
def test_a_host_whose_bus_is_cut_is_woken_by_its_doorbell_and_by_no_other_token(
    hosts: Sequence[EmulatedHost], sleeper: SleepingHost, leader: Keeper, ringing: Any, figures: Figures
) -> None:
    leader.ringers = (hosts[1].machine.name,)
    leader.sleep("lowpower-s0")
    assert wait_until(sleeper.stands_still, POWER_SECONDS), sleeper.groups()
    with sleeper.without_bus():
        ringing.forge(sleeper.name)
        assert wait_until(lambda: "without the token" in sleeper.said_by_waker(), POWER_SECONDS)
        assert sleeper.stands_still()
        begun = time.monotonic()
        assert leader.call().startswith("its doorbell")
        assert wait_until(sleeper.is_whole, POWER_SECONDS), sleeper.said_by_waker()
        figures.add("woken by its doorbell while the bus is cut", time.monotonic() - begun, "s")
    leader.until_awake()
    assert leader.bmc.orders == []


def test_a_host_in_s3_does_not_serve_and_is_woken_by_its_bmc(
    hosts: Sequence[EmulatedHost],
    sleeper: SleepingHost,
    leader: Keeper,
    lent: tuple[Ticket, list[Key]],
    figures: Figures,
) -> None:
    ticket, keys = lent
    borrower = borrow(hosts, ticket=ticket, seconds=DEADLINE_SECONDS)
    borrower.open(keys)
    before = sleeper.counted()
    leader.sleep("s3")
    assert wait_until(lambda: sleeper.host.state == "suspended", POWER_SECONDS)
    error, seconds = borrower.read_until_gone(keys[0], within=120)
    figures.add("a suspended lender is noticed", seconds, "s", f"<= {NOTICED_SECONDS:g}")
    assert error in ("TransportTimeout", "TransportGone")
    assert seconds <= NOTICED_SECONDS
    leader.wake()
    assert leader.bmc.orders == ["On"]
    assert sleeper.host.state == "running"
    assert sleeper.is_whole()
    assert wait_until(lambda: sleeper.counted() > before, POWER_SECONDS)


@pytest.mark.night
@pytest.mark.usefixtures("lent")
def test_a_host_whose_waker_died_is_reset_by_its_bmc(sleeper: SleepingHost, leader: Keeper) -> None:
    """Nobody can thaw it; after the reset it sleeps and wakes as any other."""
    leader.bmc.orders.clear()
    leader.sleep("lowpower-s0")
    assert wait_until(sleeper.stands_still, POWER_SECONDS), sleeper.groups()
    sleeper.kill_waker()
    leader.wake_until_reset()
    assert leader.bmc.orders == ["ForceRestart"]
    set_up(sleeper.host, ADDRESSES[0])
    sleeper.start()
    leader.wake()
    assert sleeper.is_whole()
    leader.sleep("lowpower-s0")
    leader.wake()
    assert sleeper.is_whole()
