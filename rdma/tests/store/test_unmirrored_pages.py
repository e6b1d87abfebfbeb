"""Pages with several lenders and no mirror: what a lender has is the only copy."""

import pytest

from pondstack.domain.errors import Unavailable
from pondstack_rdma.base import Transport
from pondstack_rdma.errors import PageLost
from pondstack_rdma.store.leased_region import LeasedRegion
from pondstack_rdma.store.policy import lease_of
from rdma.tests.harness import PAGE, pattern
from rdma.tests.rack import Rack, check, fill, rack


def test_without_a_mirror_a_dead_lenders_pages_are_told(bare: Rack) -> None:
    content = fill(bare)
    dead = lease_of(bare.borrower.places.where[0])
    there = {page: data for page, data in content.items() if lease_of(bare.borrower.places.where[page]) != dead}
    bare.kill(next(iter(bare.leases)).lender)
    check(bare, there)
    with pytest.raises(Unavailable, match="silent"):
        bare.borrower.read(0)
    bare.borrower.reclaim(next(holding.lease for holding in bare.borrower.places.holdings() if holding.number == dead))
    bare.turns(20, 0.3)
    check(bare, there)
    bare.borrower.write(0, content[0])
    assert bare.borrower.read(0) == content[0]


def test_without_a_mirror_a_refused_batch_is_written_elsewhere(transport: Transport) -> None:
    """The lease of its first page is revoked; the others keep their slots, and no two pages share one."""
    made = rack(transport, mirror=False, sealed=False)
    first, _ = made.add("lender1", 4), made.add("lender1", 20)
    content = {page: pattern(page, PAGE) for page in range(16)}
    made.borrower.write_many(content)
    made.add("lender2")
    made.revoke(first)
    order = sorted(content, key=lambda page: lease_of(made.borrower.places.where[page]))
    content = {page: pattern(100 + page, PAGE) for page in order}
    made.borrower.write_many(content)
    assert len({made.borrower.places.where[page] for page in content}) == 16
    check(made, content)
    made.close()


def test_without_a_mirror_a_revoked_page_is_lost(bare: Rack) -> None:
    fill(bare)
    bare.revoke(next(iter(bare.leases)))
    with pytest.raises(PageLost):
        bare.borrower.read(0)
    bare.turns(3)
    with pytest.raises(PageLost):
        bare.borrower.read(0)
    bare.borrower.write(0, pattern(1, PAGE))
    assert bare.borrower.read(0) == pattern(1, PAGE)


def test_a_page_that_is_written_elsewhere_while_its_lease_is_given_up_stays_there(
    bare: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VM writes between the look at the lease and the page's turn; without a mirror that is the only copy."""
    fill(bare)
    places = bare.borrower.places
    lost = next(holding for holding in places.holdings() if holding.number == lease_of(places.where[0]))
    pages_on, written = places.pages_on, pattern(2, PAGE)

    def meanwhile(holding: LeasedRegion) -> list[int]:
        pages = pages_on(holding)
        bare.borrower.write(0, written)
        return pages

    monkeypatch.setattr(places, "pages_on", meanwhile)
    bare.revoke(lost.lease)
    places.lost(lost)
    bare.turns(1)
    assert bare.borrower.read(0) == written
    assert bare.freed == [lost.lease]


def test_without_a_mirror_a_reclaimed_lease_is_copied(bare: Rack) -> None:
    content = fill(bare)
    lease = next(iter(bare.leases))
    bare.borrower.reclaim(lease)
    bare.turns(10)
    assert bare.freed == [lease]
    bare.revoke(lease)
    check(bare, content)


def test_without_a_mirror_and_lenders_a_write_is_refused(transport: Transport) -> None:
    made = rack(transport, mirror=False)
    with pytest.raises(Unavailable, match="add leases"):
        made.borrower.write(0, bytes(PAGE))
    assert made.borrower.read(0) == bytes(PAGE)
