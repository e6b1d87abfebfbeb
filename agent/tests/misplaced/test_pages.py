"""Pages of guests that stay are moved back once their node is quiet; what may not, cannot or need not move stays."""

import logging
from dataclasses import dataclass, field, replace

import pytest

from agent.tests.conftest import Later
from pondstack.domain.errors import DeviceFailed, HostUnusable, NotFound
from pondstack.rpc.wire import Attached, Backing
from pondstack_agent.host.numa import Region
from pondstack_agent.locks import NamedLocks
from pondstack_agent.misplaced import plan
from pondstack_agent.misplaced.pages import MisplacedPages
from pondstack_agent.mitigation import mover
from pondstack_agent.mitigation.mover import Mover

POOL, PAGE = 2, 4096
AFTER = 60.0


@dataclass
class Guest:
    """A guest with a local cell and a pool backend of 512 pages; `away` of them are on node 0."""

    consumer_uuid: str
    pid: int
    away: int
    pinned: int = 0
    running: bool = True

    def regions(self) -> list[Region]:
        """As Guest.regions."""
        if not self.running:
            return []
        start = self.pid << 32
        pool = Region(start, start + 512 * PAGE, frozenset({POOL}), pages={0: self.away, POOL: 512 - self.away})
        return [Region(0, 100 * PAGE, frozenset({0}), pages={0: 100}), pool]


@dataclass
class Host:
    """The pools, the nodes and the kernel of a host whose guests each have one allocation, and its clock."""

    guests: list[Guest]
    counts: dict[int, int | None] = field(default_factory=lambda: {POOL: 1})
    spare: int = 10_000
    kept: int = 5
    mitigated: set[str] = field(default_factory=set)
    migrating: set[int] = field(default_factory=set)
    going: dict[str, str] = field(default_factory=dict)
    coming: set[str] = field(default_factory=set)
    now: float = 0.0
    moves: list[tuple[int, int]] = field(default_factory=list)
    at_move: dict[int, object] = field(default_factory=dict)

    def evacuations(self) -> dict[int, int | None]:
        return dict(self.counts)

    def stuck(self) -> dict[str, str]:
        return self.going

    def attached(self) -> tuple[Attached, ...]:
        stranger = Attached("unrecorded", "", "pool", (), True)
        return (
            *(Attached(f"of-{item.consumer_uuid}", item.consumer_uuid, "pool", ()) for item in self.guests),
            stranger,
        )

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        assert allocation_uuid != "unrecorded"
        if allocation_uuid in self.coming:
            raise DeviceFailed("not all online")
        return (Backing("node", 2, host_node=POOL),)

    def find(self, consumer: str) -> Guest:
        for item in self.guests:
            if item.consumer_uuid == consumer and item.running:
                return item
        raise NotFound(consumer)

    def kept_pages(self, node: int) -> int:
        assert node == POOL
        return self.kept

    def spare_pages(self, node: int) -> int:
        assert node == POOL
        return self.spare

    def gather_pages(self, pid: int, ranges, node: int, at_most: int) -> tuple[int, int, str]:
        """As privileged.gather_pages: some of them, when some are pinned or there is room for some."""
        [guest] = (item for item in self.guests if item.pid == pid)
        assert node == POOL
        assert all(start >> 32 == pid for start, _, _ in ranges), "the pool backend and nothing else"
        number = len(self.moves)
        asked = min(sum(len(range(*item)) for item in ranges), guest.away, at_most)
        moved = max(min(asked, guest.away - guest.pinned), 0)
        guest.away -= moved
        self.spare -= moved
        self.moves.append((pid, moved))
        self.at_move.get(number, lambda: None)()
        return moved, asked - moved, "they are busy or pinned" if moved < asked else ""


def agent(host: Host, later: Later, chunk_mib: int = 1) -> MisplacedPages:
    """Return a life of the agent."""
    return MisplacedPages(
        pools=host,
        nodes=host,
        mover=Mover(host, chunk_mib),
        mitigated=lambda tag: tag in host.mitigated,
        consumers=NamedLocks(),
        executor=later,
        clock=lambda: host.now,
        find=host.find,
        migrating=lambda pid: pid in host.migrating,
    )


@pytest.fixture
def later() -> Later:
    """What waits in the background."""
    return Later()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """Two guests that stay, both with pages elsewhere."""
    made = Host([Guest("vm1", 11, 400), Guest("vm2", 12, 20)])
    monkeypatch.setattr(mover.privileged, "gather_pages", made.gather_pages)
    return made


def beat(pages: MisplacedPages, later: Later) -> None:
    """One turn of the heartbeat's thread, and what waits in the background."""
    pages.maintain(AFTER)
    later.run()


def test_all_of_it_comes_back_and_is_told_once(host: Host, later: Later, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pages = agent(host, later)
    beat(pages, later)
    assert [guest.away for guest in host.guests] == [0, 0]
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert "420 were elsewhere and are moved back, 0 stay" in record.message
    before = list(host.moves)
    host.now = 1e6
    beat(pages, later)
    assert host.moves == before


def test_each_evacuation_is_followed_by_a_look(host: Host, later: Later) -> None:
    pages = agent(host, later)
    beat(pages, later)
    host.guests[0].away = 7
    beat(pages, later)
    assert host.guests[0].away == 7  # nobody said that memory went offline
    host.counts[POOL] = 2
    beat(pages, later)
    assert host.guests[0].away == 0


def test_while_memory_goes_offline_nothing_moves_into_what_goes_next(host: Host, later: Later) -> None:
    pages = agent(host, later)
    host.counts[POOL] = None
    beat(pages, later)
    assert host.moves == []
    host.counts[POOL] = 2
    beat(pages, later)
    assert host.guests[0].away == 0


def test_memory_that_goes_offline_meanwhile_ends_the_look(host: Host, later: Later) -> None:
    host.at_move[0] = lambda: host.counts.update({POOL: None})
    pages = agent(host, later)
    beat(pages, later)
    assert len(host.moves) == 1
    beat(pages, later)
    assert len(host.moves) == 1
    host.counts[POOL] = 2
    beat(pages, later)
    assert [guest.away for guest in host.guests] == [0, 0]


def test_the_agents_end_ends_the_look_and_its_next_life_goes_on(host: Host, later: Later) -> None:
    pages = agent(host, later)
    host.at_move[0] = pages.stop
    beat(pages, later)
    assert len(host.moves) == 1
    beat(agent(host, later), later)
    assert [guest.away for guest in host.guests] == [0, 0]


def test_a_guest_that_was_mitigated_stays_where_it_is(host: Host, later: Later) -> None:
    host.mitigated.add("of-vm1")
    beat(agent(host, later), later)
    assert [guest.away for guest in host.guests] == [400, 0]


def test_a_mitigation_that_begins_meanwhile_has_its_way(host: Host, later: Later) -> None:
    host.at_move[0] = lambda: host.mitigated.add("of-vm1")
    beat(agent(host, later), later)
    assert [pid for pid, _ in host.moves] == [11, 12]
    assert host.guests[1].away == 0


def test_a_guest_on_its_way_to_another_host_is_left_alone_and_looked_at_again(host: Host, later: Later) -> None:
    host.migrating.add(11)
    pages = agent(host, later)
    beat(pages, later)
    assert [guest.away for guest in host.guests] == [400, 0]
    host.migrating.clear()  # the migration was cancelled
    host.now += AFTER
    beat(pages, later)
    assert host.guests[0].away == 0


def test_what_goes_or_comes_is_left_alone(host: Host, later: Later) -> None:
    host.going["of-vm1"] = "pinned"
    host.coming.add("of-vm2")
    beat(agent(host, later), later)
    assert host.moves == []


def test_guests_that_end_meanwhile(host: Host, later: Later) -> None:
    host.guests[1].running = False
    host.at_move[0] = lambda: setattr(host.guests[0], "running", False)
    pages = agent(host, later)
    beat(pages, later)
    assert {pid for pid, _ in host.moves} == {11}
    host.now += AFTER
    moved = len(host.moves)
    beat(pages, later)
    assert len(host.moves) == moved


def test_pinned_pages_are_tried_again_with_a_bound(host: Host, later: Later, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    host.guests[0].pinned = 30
    pages = agent(host, later)
    beat(pages, later)
    assert host.guests[0].away == 30
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 1
    assert "guest vm1: 30 pages, they are busy or pinned" in told[0]
    assert "tried again" in told[0]
    for _ in range(3 * plan.ATTEMPTS):
        host.now += AFTER
        beat(pages, later)
    assert host.moves.count((11, 0)) == 2 * (plan.ATTEMPTS - 1)  # two chunks
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2
    assert "until memory of the node goes offline again" in told[1]
    host.guests[0].pinned = 0
    host.counts[POOL] = 2
    beat(pages, later)
    assert host.guests[0].away == 0


def test_what_is_let_go_comes_back_at_the_next_attempt(host: Host, later: Later) -> None:
    host.guests[0].pinned = 30
    pages = agent(host, later)
    beat(pages, later)
    host.guests[0].pinned = 0
    host.now += AFTER
    beat(pages, later)
    assert host.guests[0].away == 0


def test_without_room_it_says_so(host: Host, later: Later, caplog: pytest.LogCaptureFixture) -> None:
    host.spare = 300
    beat(agent(host, later), later)
    assert [guest.away for guest in host.guests] == [100, 20]
    [told] = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert "guest vm1: 100 pages, node 2 has no more room" in told
    assert "guest vm2: 20 pages, node 2 has no more room" in told


def test_what_the_kernel_keeps_of_the_node_is_no_trouble(
    host: Host, later: Later, caplog: pytest.LogCaptureFixture
) -> None:
    host.spare, host.kept = 410, 10
    pages = agent(host, later)
    beat(pages, later)
    host.now += AFTER
    beat(pages, later)
    assert [guest.away for guest in host.guests] == [0, 10]
    assert host.moves == [(11, 256), (11, 144), (12, 10)]
    assert all(record.levelno < logging.WARNING for record in caplog.records)


def test_a_look_that_fails_is_an_attempt(host: Host, later: Later, caplog: pytest.LogCaptureFixture) -> None:
    def unreadable(_node: int) -> int:
        raise HostUnusable("cannot read node2/meminfo")

    broken = replace(host)
    broken.spare_pages = unreadable
    pages = agent(broken, later)
    for _ in range(3 * plan.ATTEMPTS):
        beat(pages, later)
        host.now = broken.now = broken.now + AFTER
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2
    assert "cannot read node2/meminfo" in told[0]


def test_one_look_at_a_time(host: Host, later: Later) -> None:
    pages = agent(host, later)
    pages.maintain(AFTER)
    pages.maintain(AFTER)
    assert len(later.waiting) == 1
