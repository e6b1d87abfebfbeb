"""Buffers come, are wanted back, and go: what the store uses is what its agent knows of."""

from dataclasses import replace

import pytest

from pondstack_rack.wait import wait_until

from .conftest import SECONDS, content


def fill(bench, version=1):
    with bench.reader() as reader:
        for page in range(200):
            reader.write(page, content(page, version))


def check(bench, version=1):
    with bench.reader() as reader:
        assert all(reader.read(page) == content(page, version) for page in range(200))


def test_a_buffer_is_left_for_another_one(bench) -> None:
    key = bench.arrive("lender1", 0)
    fill(bench)
    bench.arrive("lender2", 3)
    assert bench.leave("lender1", 0, seconds=SECONDS) == []
    assert bench.store.leases.view() == {
        "used": [["lender2", 3, bench.keys["lender2", 3].number]],
        "ended": [["lender1", 0, key.number]],
    }
    bench.lenders["lender1"].revoke(key)
    check(bench)
    assert bench.store.view()["pages"]["remote"] == 200
    assert bench.store.pages.counts.values["given_up"] == 0


def test_a_buffer_is_left_for_the_mirror(bench) -> None:
    bench.arrive("lender1", 0)
    fill(bench)
    assert bench.leave("lender1", 0) == []
    bench.lenders["lender1"].revoke(bench.keys["lender1", 0])
    check(bench)
    assert bench.store.view()["pages"]["mirror_only"] == 200


def test_what_was_left_is_never_taken_again(bench) -> None:
    bench.arrive("lender1", 0)
    assert bench.leave("lender1", 0) == []
    assert bench.tell("lender1", 0) == []
    bench.arrive("lender1", 1)
    assert bench.tell("lender1", 1) == [1]
    assert [name[:2] for name in bench.store.leases.view()["used"]] == [["lender1", 1]]


def test_what_is_left_before_it_came_does_not_come(bench) -> None:
    """The answer to `arrive` was lost, or it overtakes: the agent has told the lender's owner that nobody uses it."""
    bench.arrive("lender1", 0)
    key = bench.keys["lender1", 5] = bench.lenders["lender1"].export(bench.lenders["lender1"].register(2**20), "host1")
    assert bench.leave("lender1", 5) == []
    assert bench.tell("lender1", 5) == []
    assert ["lender1", 5, key.number] in bench.store.leases.view()["ended"]


def test_a_key_that_was_revoked_is_told_as_ended(bench) -> None:
    key = bench.arrive("lender1", 0)
    fill(bench)
    bench.lenders["lender1"].revoke(key)
    check(bench)
    assert wait_until(lambda: bench.store.leases.view()["ended"] == [["lender1", 0, key.number]], SECONDS)
    check(bench)


def test_a_lender_that_ends_is_noticed_when_it_is_told(bench) -> None:
    bench.arrive("lender1", 0)
    fill(bench)
    bench.lenders.pop("lender1").close()
    bench.store.leases.lost("lender1")
    assert bench.store.view()["lenders"][0]["state"] == "down"
    check(bench)
    bench.arrive("lender2", 0)
    assert wait_until(lambda: not bench.store.pages.stranded(), SECONDS)
    check(bench)


@pytest.mark.parametrize("sealing", [True, False])
def test_a_lender_sees_pages_only_without_a_seal(bench, sealing) -> None:
    bench.exporter.close()
    bench.store.close(SECONDS)
    bench.settings = replace(bench.settings, sealing=sealing)
    bench.open()
    bench.arrive("lender1", 0)
    with bench.reader() as reader:
        reader.write(0, content(0, 9))
    lender = bench.lenders["lender1"]
    [region] = lender._regions.values()
    there = lender.load(region, 0, region.size_bytes)
    assert any(there)
    assert (content(0, 9) in there) is not sealing
