"""Pages with several lenders and a mirror: what happens when lenders die, take back, lie, or are silent."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, InUse, NotFound
from pondstack_rdma.base import Transport
from pondstack_rdma.errors import MirrorBusy, MirrorDegraded, PageLost
from pondstack_rdma.fault import FaultPlan, FaultTransport
from pondstack_rdma.store.peer import PeerState
from pondstack_rdma.store.policy import slot_of
from rdma.tests.harness import PAGE, pattern, shm
from rdma.tests.rack import PAGES, Rack, check, fill, rack


def test_pages_are_zeros_at_first(one: Rack) -> None:
    assert one.borrower.read(0) == bytes(PAGE)


def test_pages_are_spread_over_lenders(one: Rack) -> None:
    """Zombieland 4.4: the failure of one harms a third of them."""
    check(one, fill(one))
    assert one.used() == {"lender1": 8, "lender2": 8, "lender3": 8}
    assert one.borrower.counts.values["mirror_reads"] == 0
    check(one, fill(one, 2))
    assert one.used() == {"lender1": 8, "lender2": 8, "lender3": 8}


def test_many_at_once(one: Rack) -> None:
    content = {page: pattern(page, PAGE) for page in range(12)}
    one.borrower.write_many(content)
    assert one.borrower.read_many([11, 3, 3, 20]) == [content[11], content[3], content[3], bytes(PAGE)]
    calls = sum(peer.counts.calls for peer in one.borrower.report().peers)
    assert calls == 6 - 1  # one a lender to write; 11 and 3 lie with two of them
    check(one, content)


def test_no_lender_at_all(transport: Transport) -> None:
    made = rack(transport)
    content = fill(made)
    check(made, content)
    assert made.borrower.stranded() == PAGES
    made.add("lender1")
    made.settle()
    check(made, content)
    assert made.used() == {"lender1": PAGES}
    made.close()


def test_a_lender_dies(one: Rack) -> None:
    content = fill(one)
    one.kill("lender2")
    check(one, content)
    assert one.borrower.counts.values["mirror_reads"] == 16
    one.settle()
    assert {name: used for name, used in one.used().items() if used} == {"lender1": 12, "lender3": 12}
    before = one.borrower.counts.values["mirror_reads"]
    check(one, content)
    assert one.borrower.counts.values["mirror_reads"] == before
    check(one, fill(one, 2))


def test_an_idle_vm_notices_too(one: Rack) -> None:
    content = fill(one)
    one.kill("lender2")
    one.turns(2, 2.0)
    one.settle()
    assert one.borrower.counts.values["mirror_reads"] == 0
    check(one, content)


def test_all_lenders_die(one: Rack) -> None:
    content = fill(one)
    for name in list(one.lenders):
        one.kill(name)
    check(one, content)
    one.more = lambda pages: [one.lend("lender9", pages)]
    one.settle()
    assert one.used()["lender9"] == PAGES
    assert one.asked == [PAGES]
    check(one, content)


def test_a_lender_that_was_away_is_used_again(one: Rack) -> None:
    """Its link broke; its key is alive, and what it has is still good."""
    content = fill(one)
    for peer in one.borrower.places.peers():
        assert peer._link
        peer._link.close()
    check(one, content)
    assert {peer.state for peer in one.borrower.report().peers} == {PeerState.DOWN}
    one.turns(3, 0.11)
    assert one.borrower.stranded() == 0
    assert one.borrower.counts.values["moved"] == 0
    check(one, content)


def test_a_lender_that_restarted_knows_no_key(one: Rack) -> None:
    content = fill(one)
    one.kill("lender2")
    one.lenders["lender2"] = one.transport.lend("lender2")
    check(one, content)
    one.settle()
    check(one, content)
    fresh = one.add("lender2")
    assert one.borrower.places.holds(fresh)


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_lender_reclaims(one: Rack, seconds: float) -> None:
    """US_reclaim, Zombieland 4.3: the lender learns when nothing uses its memory, and then ends the key."""
    content = fill(one)
    lease = next(iter(one.leases))
    with pytest.raises(InUse):
        one.borrower.add(lease)
    one.borrower.reclaim(lease, seconds)
    assert not one.borrower.wait_free(lease, 0)
    one.settle()
    one.turns(1)
    assert one.freed == [lease]
    assert one.borrower.wait_free(lease, 0)
    assert one.borrower.counts.values["given_up"] == (0 if seconds else 8)
    one.revoke(lease)
    check(one, content)
    assert one.borrower.counts.values["mirror_reads"] == 0
    with pytest.raises(NotFound):
        one.borrower.reclaim(lease)


def test_a_lease_that_is_reclaimed_without_room_elsewhere(transport: Transport) -> None:
    made = rack(transport)
    lease = made.add("lender1")
    content = fill(made)
    made.borrower.reclaim(lease, 10.0)
    check(made, content)
    made.turns(2)
    assert not made.freed
    made.turns(2, 10.0)
    assert made.freed == [lease]
    check(made, content)
    assert made.borrower.stranded() == PAGES
    made.close()


def test_a_lease_that_is_revoked_without_a_word(one: Rack) -> None:
    content = fill(one)
    lease = next(iter(one.leases))
    one.revoke(lease)
    check(one, content)
    one.settle()
    assert one.freed == [lease]
    check(one, content)
    assert all(peer.state is PeerState.UP for peer in one.borrower.report().peers)


def test_a_page_that_a_lender_changed(one: Rack) -> None:
    content = fill(one)
    lease, region = next(iter(one.leases.items()))
    lender = one.lenders[lease.lender]
    for slot in range(8):
        lender.store(region, slot * PAGE, b"x")
    check(one, content)
    corrupt = {peer.lender: peer.counts.corrupt for peer in one.borrower.report().peers}
    assert corrupt[lease.lender] >= one.borrower.settings.corrupt_limit
    one.settle()
    assert one.freed == [lease]
    check(one, content)


def test_a_slot_that_gave_a_changed_page_is_used_no_more(transport: Transport) -> None:
    """Its lender is believed still; that place of it is not."""
    made = rack(transport)
    lease = made.add("lender1", 2 * PAGES)
    made.borrower.write(0, pattern(1, PAGE))
    bad = slot_of(made.borrower.places.where[0])
    made.lenders["lender1"].store(made.leases[lease], bad * PAGE, b"x")
    assert made.borrower.read(0) == pattern(1, PAGE)
    made.settle()
    content = fill(made)
    slots = {slot_of(place) for place in made.borrower.places.where}
    assert len(slots) == PAGES
    assert bad not in slots
    check(made, content)
    assert made.borrower.places.holds(lease)
    made.close()


def test_an_old_page_that_a_lender_gives_again(one: Rack) -> None:
    fill(one)
    lease, region = next(iter(one.leases.items()))
    old = one.lenders[lease.lender].load(region, 0, 8 * PAGE)
    content = fill(one, 2)
    one.lenders[lease.lender].store(region, 0, old)
    check(one, content)


@pytest.mark.parametrize("fault", ["lost", "unanswered", "broken"])
def test_a_write_that_nobody_answers(tmp_path: Path, fault: str) -> None:
    """Its slot is used no more: it may still come, over whatever is there by then."""
    transport = FaultTransport(shm(tmp_path), FaultPlan(seed=1), lambda _: None)
    made = rack(transport, sealed=False)
    made.add("lender1", 2 * PAGES)
    made.borrower.write(0, pattern(1, PAGE))
    before = slot_of(made.borrower.places.where[0])
    transport._plan = FaultPlan(seed=1, **{fault: 1.0})
    made.borrower.write(0, pattern(2, PAGE))
    transport._plan = FaultPlan(seed=1)
    assert made.borrower.read(0) == pattern(2, PAGE)
    made.settle()
    content = fill(made)
    slots = {slot_of(place) for place in made.borrower.places.where}
    assert len(slots) == PAGES
    assert before not in slots
    check(made, content)
    made.close()


def test_a_full_disk_refuses_writes_and_loses_nothing(one: Rack) -> None:
    content = fill(one)
    one.disk.failing = errno.ENOSPC
    for page in range(16):
        one.borrower.write(page, pattern(5, PAGE))
        content[page] = pattern(5, PAGE)
        one.turns(1)
    with pytest.raises(MirrorDegraded):
        one.borrower.write(16, pattern(5, PAGE))
    check(one, content)
    report = one.borrower.report()
    assert (report.mirror, report.mirror_queued, report.pages["refused"]) == ("degraded", 16, 1)
    for name in list(one.lenders):
        one.kill(name)
    check(one, content)
    one.disk.failing = 0
    one.turns(20)
    assert one.borrower.report().mirror == "good"
    check(one, content)


def test_a_batch_that_is_refused_in_the_middle(one: Rack) -> None:
    content = fill(one)
    with pytest.raises(MirrorBusy, match="slow: 16 pages wait"):
        one.borrower.write_many({page: pattern(7, PAGE) for page in range(PAGES)})
    check(one, content | {page: pattern(7, PAGE) for page in range(16)})


@pytest.mark.parametrize("table", [True, False])
def test_another_process_goes_on(transport: Transport, table: bool) -> None:
    """After a crash: with the table of versions, what did not reach the disk is told; without, it is the older one."""
    versions = bytearray(8 * PAGES)
    first = rack(transport, versions=versions)
    first.add("lender1")
    content = fill(first)
    first.turns(10)
    first.borrower.write(3, pattern(9, PAGE))
    first.close()
    second = rack(transport, disk=first.disk.crash_none(), versions=versions if table else None)
    second.add("lender2")
    if table:
        with pytest.raises(PageLost):
            second.borrower.read(3)
        content.pop(3)
    check(second, content)
    second.settle()
    check(second, content)
    second.borrower.write(3, pattern(10, PAGE))
    check(second, content | {3: pattern(10, PAGE)})
    second.close()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda pages: pages.read(PAGES), NotFound),
        (lambda pages: pages.write(-1, bytes(PAGE)), NotFound),
        (lambda pages: pages.write(0, bytes(PAGE + 1)), BadRequest),
        (lambda pages: pages.read_many([0] * 1025), BadRequest),
    ],
)
def test_what_is_no_page_is_refused(one: Rack, call: Callable[..., object], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(one.borrower)


def test_a_report_tells_of_each_lender(one: Rack) -> None:
    check(one, fill(one))
    report = one.borrower.report()
    assert (report.stranded, report.room_pages, report.mirror) == (0, 2 * PAGES, "good")
    assert [peer.lender for peer in report.peers] == ["lender1", "lender2", "lender3"]
    for peer in report.peers:
        assert (peer.counts.failures, peer.counts.connects, peer.writes.count) == (0, 1, 8)
