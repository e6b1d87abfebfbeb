"""Remote memory of a consumer: borrowed, used, taken back, lost, released, by real processes under a real ledger."""

from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, BufferShortage, Conflict, OperationMismatch, Unavailable, Unclaimed
from pondstack_rack.wait import wait_until

from ..lending.conftest import DEADLINE_SECONDS
from ..pagestore.conftest import content
from .conftest import CONSUMER

PAGES = range(0, 1024, 3)


@pytest.fixture
def lent(rack):
    """Two hosts lend 4 MiB each; a third one is to borrow."""
    for name in ("host1", "host2"):
        rack.lend(name, 4)
    assert rack.borrower
    return rack


def fill(host, version=1):
    with host.reader() as reader:
        for page in PAGES:
            reader.write(page, content(page, version))


def check(host, version=1):
    with host.reader() as reader:
        assert [page for page in PAGES if reader.read(page) != content(page, version)] == []


def where(host):
    return host.view()["store"]["pages"]


def test_borrowed_memory_is_spread_used_and_given_back(lent) -> None:
    host = lent.borrower
    view = host.alloc(4)
    assert (view["state"], view["mib"], view["borrowed_mib"]) == ("active", 4, 4)
    assert lent.controller.states() == {"free": 4, "online": 4}
    assert wait_until(lambda: where(host)["room"] == 1024, DEADLINE_SECONDS)
    fill(host)
    check(host)
    assert where(host) == {"total": 1024, "remote": 342, "moving": 0, "mirror_only": 0, "room": 1024 - 342}
    lenders = host.view()["store"]["lenders"]
    assert len(lenders) == 2
    assert all(0 < each["reads"]["p50_us"] <= each["reads"]["p99_us"] for each in lenders)
    assert host.alloc(4) == host.view()
    assert host.release()
    assert not host.store.folder.exists()
    assert list(Path(host.conf.page_store.mirror_folder).iterdir()) == []
    lent.turn(2)
    assert lent.free()
    assert host.calls.get_remote(consumer_uuid=CONSUMER) is None
    assert not host.release()


def test_guaranteed_memory_is_all_or_nothing(lent) -> None:
    with pytest.raises(BufferShortage):
        lent.borrower.alloc(9, guaranteed=True)
    assert lent.free()
    assert not lent.borrower.store.folder.exists()
    assert lent.borrower.remote.views() == []
    assert lent.borrower.alloc(8, guaranteed=True, operation="alloc2")["borrowed_mib"] == 8


def test_best_effort_grows_in_the_background(lent) -> None:
    host = lent.borrower
    assert host.alloc(16, guaranteed=False)["borrowed_mib"] == 8
    with host.reader() as reader:
        reader.write(4095, content(4095, 1))
    lent.lend("host3", 6)
    host.beat()
    assert host.view()["borrowed_mib"] == 14
    lent.lend("host3", 12)
    host.beat()
    host.beat()
    assert host.view()["borrowed_mib"] == 16
    assert lent.controller.states() == {"free": 4, "online": 16}
    with host.reader() as reader:
        assert reader.read(4095) == content(4095, 1)


def test_best_effort_begins_without_any_lender_and_controller(rack) -> None:
    host = rack.borrower
    rack.controller.away = True
    assert host.alloc(2, guaranteed=False)["borrowed_mib"] == 0
    with host.reader() as reader:
        reader.write(5, content(5, 1))
    assert where(host)["mirror_only"] == 1
    rack.controller.away = False
    rack.lend("host1", 2)
    host.beat()
    assert wait_until(lambda: where(host)["remote"] == 1, DEADLINE_SECONDS)
    with host.reader() as reader:
        assert reader.read(5) == content(5, 1)


def test_a_lender_takes_its_memory_back(lent) -> None:
    host = lent.borrower
    host.alloc(4)
    assert wait_until(lambda: where(host)["room"] == 1024, DEADLINE_SECONDS)
    fill(host)
    lent.reclaim("host1", 4)
    lent.turn(3)
    assert lent["host1"].lending.get_lending()["buffers"] == []
    assert wait_until(lambda: where(host)["remote"] == 342, DEADLINE_SECONDS)
    check(host)
    host.beat()
    assert host.view()["borrowed_mib"] == 4
    assert lent.controller.states() == {"online": 4}


def test_a_lender_dies(lent) -> None:
    host = lent.borrower
    host.alloc(4)
    assert wait_until(lambda: where(host)["room"] == 1024, DEADLINE_SECONDS)
    fill(host)
    lent["host1"].kill()
    check(host)
    lent.turn(3)
    assert wait_until(lambda: where(host)["remote"] == 342, DEADLINE_SECONDS)
    check(host)
    assert host.view()["borrowed_mib"] == 4


def test_a_frozen_lender_serves_on_while_the_agent_restarts(lent) -> None:
    """The page store keeps its links; the agent would need the lender's CPU to open keys again."""
    host = lent.borrower
    host.alloc(4)
    assert wait_until(lambda: where(host)["room"] == 1024, DEADLINE_SECONDS)
    fill(host)
    with lent["host1"].frozen():
        host.restart()
        check(host)
        assert host.view()["store"]["counts"]["mirror_reads"] == 0


def test_a_killed_page_store_comes_back_with_what_was_flushed(lent) -> None:
    host = lent.borrower
    host.alloc(4)
    fill(host)
    with host.reader() as reader:
        reader.flush()
    host.kill_store()
    assert host.view()["store"] is None
    host.beat()
    check(host)
    assert wait_until(lambda: where(host)["remote"] == 342, DEADLINE_SECONDS)
    check(host)


def test_the_mirror_serves_for_a_lender_that_sleeps(rack) -> None:
    """Its keys were in escrow, so that it is asked for nothing; it lets no page store in, either."""
    host, lender = rack.borrower, rack["host1"]
    rack.sleep("host1", 2)
    with lender.frozen():
        view = host.alloc(2)
        assert (view["state"], view["borrowed_mib"]) == ("active", 2)
        with host.reader() as reader:
            for page in PAGES[:100]:
                reader.write(page, content(page, 1))
            reader.flush()
            assert [page for page in PAGES[:100] if reader.read(page) != content(page, 1)] == []
        seen = host.view()["store"]
        assert [each["state"] for each in seen["lenders"]] == ["down"]
        assert (seen["pages"]["room"], seen["pages"]["remote"], seen["pages"]["mirror_only"]) == (0, 0, 100)
        host.beat()
        assert host.view()["borrowed_mib"] == 2
    assert wait_until(lambda: where(host)["remote"] == 100, DEADLINE_SECONDS)
    with host.reader() as reader:
        assert [page for page in PAGES[:100] if reader.read(page) != content(page, 1)] == []
    assert host.release()
    lender.lend(2, operation="awake")
    rack.turn(3)
    assert rack.free()
    assert not any(item.promised_to or item.escrowed for item in rack.controller.ledger.buffers.find())


def test_what_was_opened_serves_on_while_its_lender_sleeps(rack) -> None:
    host, lender = rack.borrower, rack["host1"]
    rack.sleep("host1", 2)
    assert host.alloc(2)["borrowed_mib"] == 2
    assert wait_until(lambda: where(host)["room"] == 512, DEADLINE_SECONDS)
    with lender.frozen(), host.reader() as reader:
        reader.write(0, content(0, 1))
        assert reader.read(0) == content(0, 1)
        assert where(host)["remote"] == 1
        assert host.view()["store"]["counts"]["mirror_reads"] == 0


@pytest.mark.parametrize("guaranteed", [True, False])
def test_a_lender_that_gives_no_key(lent, guaranteed) -> None:
    """Its keys die between the answer of the controller and their use."""
    host, prepare = lent.borrower, lent.borrower.borrower.prepare
    lost = []

    def first_fails(lender, *given):
        if not lost:
            lost.append(lender)
            raise Unavailable("the lender does not answer")
        return prepare(lender, *given)

    host.borrower.prepare = first_fails
    if guaranteed:
        with pytest.raises(Unavailable, match="do not give"):
            host.alloc(4, guaranteed)
    assert host.alloc(4, guaranteed)["borrowed_mib"] == (4 if guaranteed else 2)
    lent.turn(4)
    assert host.view()["borrowed_mib"] == 4
    assert lent.controller.states() == {"free": 4, "online": 4}
    host.release()
    lent.turn(3)
    assert lent.free()


def test_what_nobody_comes_back_for_is_undone(lent) -> None:
    host = lent.borrower
    lent.controller.away = True
    with pytest.raises(Unavailable):
        host.alloc(4, guaranteed=True)
    lent.controller.away = False
    host.remote.maintain(1e9)
    host.later.run()
    assert host.view()["state"] == "asking"
    host.now += 4000
    host.beat()
    lent.turn(2)
    assert host.remote.views() == []
    assert lent.free()
    assert not host.store.folder.exists()


def test_another_request_of_the_same_consumer_is_refused(lent) -> None:
    host = lent.borrower
    host.alloc(2)
    with pytest.raises(OperationMismatch):
        host.alloc(3)
    with pytest.raises(Conflict, match="release it first"):
        host.alloc(2, operation="alloc2")
    assert host.view()["borrowed_mib"] == 2


@pytest.mark.parametrize("mib", [0, -1])
def test_no_memory_is_refused(rack, mib) -> None:
    with pytest.raises(BadRequest):
        rack.borrower.alloc(mib)
    assert rack.borrower.remote.views() == []


@pytest.mark.parametrize("name", ["", "../../etc", "7AC7E33B-55C9-4F7F-8B23-C4A1F2C52F3B", "x"])
def test_a_consumer_is_a_uuid(rack, name) -> None:
    with pytest.raises(BadRequest, match="UUID"):
        rack.borrower.calls.alloc_swap(operation_id="o", consumer_uuid=name, mib=1)
    assert rack.borrower.remote.views() == []


def test_mirrors_have_a_bound(rack) -> None:
    with pytest.raises(Unavailable, match="mirror_mib"):
        rack.borrower.alloc(65, guaranteed=False)
    assert rack.borrower.remote.views() == []


def test_a_mirror_without_room_on_its_disk(rack) -> None:
    Path(rack.borrower.conf.page_store.mirror_folder).write_text("no folder")
    with pytest.raises(Unavailable, match="mirror_folder"):
        rack.borrower.alloc(4, guaranteed=False)
    assert rack.borrower.remote.views() == []


def test_what_nobody_claims_any_more_is_undone(lent, monkeypatch) -> None:
    host = lent.borrower
    lent.controller.away = True
    with pytest.raises(Unavailable):
        host.alloc(4, guaranteed=True)
    lent.controller.away = False

    def unclaimed(*_arguments):
        raise Unclaimed("the consumer claims nothing; claim it first")

    monkeypatch.setattr(lent.controller.lenders, "borrow", unclaimed)
    host.now += 4000
    host.beat()
    lent.turn(2)
    assert host.remote.views() == []


def test_a_guaranteed_request_without_a_claim_leaves_nothing(lent, monkeypatch) -> None:
    host = lent.borrower

    def unclaimed(*_arguments):
        raise Unclaimed("the consumer claims nothing; claim it first")

    with monkeypatch.context() as patch:
        patch.setattr(lent.controller.lenders, "borrow", unclaimed)
        with pytest.raises(Unclaimed):
            host.alloc(4, guaranteed=True)
    assert host.remote.views() == []
    assert not host.store.folder.exists()
    assert host.alloc(4, guaranteed=True, operation="alloc2")["borrowed_mib"] == 4
