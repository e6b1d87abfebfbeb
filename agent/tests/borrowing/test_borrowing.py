"""Borrowing: what is opened, found again after a restart, given back, and told."""

import itertools
import json
import logging
import stat
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, Conflict, NotFound, PondError, Unavailable
from pondstack_rdma.errors import TransportGone


def silent(**_: object) -> None:
    raise Unavailable("no answer")


def give_back(host, indexes, incarnation, allocation="allocation1"):
    answer = host.borrowing.give_back(
        epoch=1, allocation_uuid=allocation, lender="host1", indexes=indexes, incarnation=incarnation
    )
    host.later.run()
    return answer


@pytest.fixture
def lent(rack):
    """Two buffers of host1 in an allocation of host2; their incarnation."""
    rack["host1"].lend(2)
    return rack.borrow_buffers([0, 1])


def test_a_restarted_agent_finds_its_buffers(rack, lent) -> None:
    host = rack["host2"]
    host.link("host1", lent).write(1, 0, b"there")
    host.borrowing.stop()
    host.restart()
    read = bytearray(5)
    host.link("host1", lent).read_into(1, 0, read)
    assert read == b"there"
    assert host.owner.told == [("arrived", "allocation1", [0, 1])] * 2


def test_what_is_on_disk_is_its_users_alone(rack, lent) -> None:
    folder = Path(rack["host2"].conf.agent.state_dir) / "borrowing"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    [path] = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["ticket"]
    give_back(rack["host2"], [0, 1], lent)
    [path] = folder.iterdir()
    record = json.loads(path.read_text())
    assert (record["ticket"], record["buffers"]) == ({}, {})
    host = rack["host2"]
    host.now += 4000
    host.beat()
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("lent")
def test_a_repetition_opens_nothing_new(rack) -> None:
    answer = rack["host1"].lending.export(epoch=1, indexes=[0, 1], borrower="host2")
    again = {"epoch": 1, "lender": "host1", "allocation_uuid": "allocation1", **answer}
    assert rack["host2"].borrowing.prepare(**again) == [0, 1]
    with pytest.raises(Conflict, match="another key or allocation"):
        rack["host2"].borrowing.prepare(**{**again, "allocation_uuid": "allocation2"})


def test_an_owner_that_cannot_leave_is_asked_again(rack, lent, caplog) -> None:
    host = rack["host2"]
    host.owner.stays = Conflict("the mirror is not written yet")
    assert give_back(host, [0], lent) == []
    assert "the mirror is not written yet" in caplog.text
    [view] = host.borrowing.get_borrowing()["lenders"]
    assert (view["allocations"], view["leaving"]) == ({"allocation1": [1]}, {"allocation1": [0]})
    assert rack.controller.released_buffers == {}
    host.link("host1", lent).write(0, 0, b"still there for its owner")
    host.restart()
    host.owner.stays = None
    host.beat()
    assert host.owner.told[-1] == ("leave", "allocation1", [0])
    assert [item["indexes"] for item in rack.controller.released_buffers.values()] == [[0]]
    with pytest.raises(NotFound):
        host.link("host1", lent).write(0, 0, b"x")
    host.link("host1", lent).write(1, 0, b"x")


def test_a_release_is_told_until_it_is_heard(rack, lent) -> None:
    host = rack["host2"]
    rack.controller.before["release_buffers"] = [silent]
    give_back(host, [0, 1], lent)
    [view] = host.borrowing.get_borrowing()["lenders"]
    assert view["released"] == [{"allocation_uuid": "allocation1", "indexes": [0, 1]}]
    host.restart()
    host.beat()
    assert len(rack.controller.released_buffers) == 1
    assert host.borrowing.get_borrowing()["lenders"][0]["released"] == []
    assert host.owner.told.count(("leave", "allocation1", [0, 1])) == 1


def test_a_late_prepare_does_not_bring_back_what_was_given_back(rack, lent) -> None:
    answer = rack["host1"].lending.export(epoch=1, indexes=[0], borrower="host2")
    give_back(rack["host2"], [0], lent)
    with pytest.raises(Conflict, match="given back"):
        rack["host2"].borrowing.prepare(epoch=1, lender="host1", allocation_uuid="allocation1", **answer)
    rack["host1"].lending.revoke(epoch=1, indexes=[0])
    rack.borrow_buffers([0])
    rack["host2"].link("host1", lent).write(0, 0, b"x")


def test_a_restart_notices_what_was_revoked_meanwhile(rack, lent) -> None:
    host = rack["host2"]
    host.borrowing.stop()
    rack["host1"].lending.revoke(epoch=1, indexes=[0])
    host.restart()
    assert host.owner.told[1:] == [("arrived", "allocation1", [1]), ("lost", "allocation1", [0])]
    host.link("host1", lent).write(1, 0, b"x")


@pytest.mark.usefixtures("lent")
def test_another_lenders_process_is_not_mistaken_for_the_former(rack) -> None:
    host, tries = rack["host2"], []
    rack["host1"].kill()
    rack["host1"].beat()
    rack["host1"].lend(2, operation="lend2")
    for _ in range(3):
        host.beat()
        tries.append(host.borrowing.get_borrowing()["lenders"][0]["up"])
    assert tries == [False] * 3
    assert host.owner.told[1:] == [("lost", "allocation1", [0, 1])]


def test_another_allocations_buffers_stay(rack, lent) -> None:
    with pytest.raises(Conflict, match="not of allocation allocation2"):
        give_back(rack["host2"], [0], lent, allocation="allocation2")
    rack["host2"].link("host1", lent).write(0, 0, b"x")


def test_a_key_that_is_dead_leaves_nothing(rack) -> None:
    rack["host1"].lend(2)
    answer = rack["host1"].lending.export(epoch=1, indexes=[0, 1], borrower="host2")
    rack["host1"].lending.revoke(epoch=1, indexes=[1])
    with pytest.raises(Conflict):
        rack["host2"].borrowing.prepare(epoch=1, lender="host1", allocation_uuid="allocation1", **answer)
    assert rack["host2"].borrowing.report()["lenders"][0]["allocations"] == {}
    assert rack["host2"].owner.told == []


@pytest.mark.parametrize(
    "change",
    [{"keys": {"zero": {}}}, {"keys": {"0": {}}}, {"keys": []}, {"ticket": {}}, {"ticket": {"borrower": "host3"}}],
    ids=str,
)
def test_nonsense_is_refused(rack, change) -> None:
    rack["host1"].lend(1)
    answer = rack["host1"].lending.export(epoch=1, indexes=[0], borrower="host2")
    if "borrower" in change.get("ticket", {}):
        change = {"ticket": {**answer["ticket"], **change["ticket"]}}
    with pytest.raises(BadRequest):
        rack["host2"].borrowing.prepare(**{"epoch": 1, "lender": "host1", **answer, **change})
    assert rack["host2"].borrowing.get_borrowing() == {"lenders": []}


def test_another_transport_is_named(rack) -> None:
    rack["host1"].lend(1)
    answer = rack["host1"].lending.export(epoch=1, indexes=[0], borrower="host2")
    answer["ticket"]["driver"] = "tcp"
    with pytest.raises(BadRequest, match="speaks tcp and this host shm"):
        rack["host2"].borrowing.prepare(epoch=1, lender="host1", **answer)


def test_a_lost_link_is_tried_again_less_and_less_often(rack, lent, monkeypatch, caplog) -> None:
    host = rack["host2"]
    link, tries, now = host.link("host1", lent), [], [0.0]
    monkeypatch.setattr(link, "_clock", lambda: now[0])
    rack["host1"].kill()
    host.beat()
    assert (host.owner.told[-1], link.up) == (("lost", "allocation1", [0, 1]), False)
    with pytest.raises(TransportGone, match="is down; go on from the mirror"):
        link.write(0, 0, b"x")
    connect = link._transport.connect

    def count(*arguments):
        tries.append(now[0])
        return connect(*arguments)

    monkeypatch.setattr(link._transport, "connect", count)
    for _ in range(400):
        now[0] += 0.5
        with caplog.at_level(logging.INFO):
            host.beat()
    gaps = [later - former for former, later in itertools.pairwise(tries)]
    assert gaps[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert max(gaps) == 60.0
    assert caplog.text.count("does not answer") == 1


def test_a_link_that_works_again_is_told(rack, lent) -> None:
    host = rack["host2"]
    link = host.link("host1", lent)
    link._link.close()  # as a cable that was pulled
    with pytest.raises(PondError):
        link.write(0, 0, b"x")
    link._again = 0.0
    host.beat()
    assert host.owner.told[-2:] == [("lost", "allocation1", [0, 1]), ("arrived", "allocation1", [0, 1])]
    link.write(0, 0, b"x")


def test_a_newer_key_takes_the_place_of_a_dead_one(rack) -> None:
    """A prepare was done, its answer was lost, and the controller ended the key."""
    rack["host1"].lend(2)
    life = rack.borrow_buffers([0, 1], allocation="")
    host = rack["host2"]
    late = rack["host1"].lending.export(epoch=1, indexes=[0], borrower="host2")
    rack["host1"].lending.revoke(epoch=1, indexes=[0])
    rack.borrow_buffers([0], allocation="allocation2")
    assert host.owner.told == [("arrived", "", [0, 1]), ("lost", "", [0]), ("arrived", "allocation2", [0])]
    host.link("host1", life).write(0, 0, b"x")
    host.link("host1", life).write(1, 0, b"x")
    with pytest.raises(Conflict, match="another key"):
        host.borrowing.prepare(epoch=1, lender="host1", allocation_uuid="", **late)
    assert give_back(host, [0], life, allocation="allocation2") == []
    assert host.borrowing.get_borrowing()["lenders"][0]["allocations"] == {"": [1]}


def test_a_key_that_is_being_given_back_is_not_replaced(rack, lent) -> None:
    host = rack["host2"]
    host.owner.stays = Conflict("the mirror is not written yet")
    give_back(host, [0], lent)
    rack["host1"].lending.revoke(epoch=1, indexes=[0])
    with pytest.raises(Conflict, match="give it back first"):
        rack.borrow_buffers([0], allocation="allocation2")


def test_a_promised_key_becomes_an_allocations(rack) -> None:
    rack["host1"].lend(1)
    life = rack.borrow_buffers([0], allocation="")
    rack["host2"].link("host1", life).write(0, 0, b"kept")
    rack.borrow_buffers([0], allocation="allocation1")
    read = bytearray(4)
    rack["host2"].link("host1", life).read_into(0, 0, read)
    assert read == b"kept"
    assert rack["host2"].borrowing.get_borrowing()["lenders"][0]["allocations"] == {"allocation1": [0]}


def test_a_promised_buffer_is_given_back_as_the_allocations_that_it_became(rack) -> None:
    """Its lender sleeps: it was borrowed without a new key."""
    rack["host1"].lend(1, "zombie")
    life = rack.borrow_buffers([0], allocation="")
    give_back(rack["host2"], [0], life)
    assert [item["allocation_uuid"] for item in rack.controller.released_buffers.values()] == ["allocation1"]
