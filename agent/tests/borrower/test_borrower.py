"""Borrower: what is noted, found again after a restart, given back, and told."""

import json
import stat
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, NotFound, PondError, Unavailable
from pondstack_rdma.errors import AccessRefused


def silent(**_: object) -> None:
    raise Unavailable("no answer")


def give_back(host, indexes, incarnation, allocation="allocation1"):
    answer = host.calls.give_back(
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
    host.restart()
    read = bytearray(5)
    host.link("host1", lent).read_into(1, 0, read)
    assert read == b"there"
    assert host.owner.told == [("arrived", "allocation1", [0, 1])]
    assert host.borrower.held("allocation1") == {("host1", lent): [0, 1]}


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
    answer = rack["host1"].calls.export(epoch=1, indexes=[0, 1], borrower="host2")
    again = {"epoch": 1, "lender": "host1", "allocation_uuid": "allocation1", **answer}
    assert rack["host2"].calls.prepare(**again) == [0, 1]
    with pytest.raises(Conflict, match="another key or allocation"):
        rack["host2"].calls.prepare(**{**again, "allocation_uuid": "allocation2"})


def test_an_owner_that_cannot_leave_is_asked_again(rack, lent, caplog) -> None:
    host = rack["host2"]
    host.owner.stays = Conflict("the mirror is not written yet")
    assert give_back(host, [0], lent) == []
    assert "the mirror is not written yet" in caplog.text
    [view] = host.borrower.report()["lenders"]
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
    [view] = host.borrower.report()["lenders"]
    assert view["released"] == [{"allocation_uuid": "allocation1", "indexes": [0, 1]}]
    host.restart()
    host.beat()
    assert len(rack.controller.released_buffers) == 1
    assert host.borrower.report()["lenders"][0]["released"] == []
    assert host.owner.told.count(("leave", "allocation1", [0, 1])) == 1


def test_a_late_prepare_does_not_bring_back_what_was_given_back(rack, lent) -> None:
    answer = rack["host1"].calls.export(epoch=1, indexes=[0], borrower="host2")
    give_back(rack["host2"], [0], lent)
    with pytest.raises(Conflict, match="given back"):
        rack["host2"].calls.prepare(epoch=1, lender="host1", allocation_uuid="allocation1", **answer)
    rack["host1"].calls.revoke(epoch=1, indexes=[0])
    rack.borrow_buffers([0])
    rack["host2"].link("host1", lent).write(0, 0, b"x")


def test_a_key_of_a_lender_that_sleeps_is_told_again_to_another_allocation(rack, lent) -> None:
    """It is not dead: nobody could end it meanwhile."""
    answer = rack["host1"].calls.export(epoch=1, indexes=[0], borrower="host2")
    give_back(rack["host2"], [0], lent)
    for allocation in ("allocation1", ""):
        with pytest.raises(Conflict, match="given back"):
            rack["host2"].calls.prepare(epoch=1, lender="host1", allocation_uuid=allocation, **answer)
    assert rack["host2"].calls.prepare(epoch=1, lender="host1", allocation_uuid="allocation2", **answer) == [0]
    assert rack["host2"].borrower.report()["lenders"][0]["allocations"] == {"allocation1": [1], "allocation2": [0]}


class Links:
    """Of a data plane: `down` is what it cannot connect to."""

    def __init__(self, down: tuple[str, ...] = ()) -> None:
        self.down, self.found = down, set()

    def connect(self, lender, incarnation, ticket) -> None:
        assert ticket["borrower"] == "host2"
        if lender in self.down:
            raise Unavailable("it sleeps")
        self.found.add((lender, incarnation))

    def alive(self):
        return self.found


def test_a_data_plane_connects_to_a_lender_before_that_sleeps(rack, lent) -> None:
    host, ticket = (
        rack["host2"],
        rack["host1"].calls.escrow(epoch=1, indexes=[], borrower="host2", incarnation=lent, generations={})["ticket"],
    )
    about = {"epoch": 1, "lender": "host1", "incarnation": lent}
    with pytest.raises(HostUnusable, match="no data plane"):
        host.calls.connect(ticket=ticket, **about)
    assert "links" not in host.borrower.report()
    host.borrower._links = Links()
    assert host.borrower.report()["links"] == []
    assert host.calls.connect(ticket=ticket, **about) is True
    assert host.borrower.report()["links"] == [["host1", lent]]
    with pytest.raises(BadRequest):
        host.calls.connect(ticket={**ticket, "borrower": "host3"}, **about)
    host.borrower._links = Links(down=("host1",))
    with pytest.raises(Unavailable):
        host.calls.connect(ticket=ticket, **about)


def test_another_lenders_process_is_not_mistaken_for_the_former(rack, lent) -> None:
    host = rack["host2"]
    rack["host1"].kill()
    rack["host1"].beat()
    rack["host1"].lend(2, operation="lend2")
    with pytest.raises(PondError):
        host.link("host1", lent).write(0, 0, b"x")
    assert host.borrower.held("allocation1") == {("host1", lent): [0, 1]}
    assert give_back(host, [0, 1], lent) == []
    assert host.borrower.held("allocation1") == {}


def test_another_allocations_buffers_stay(rack, lent) -> None:
    with pytest.raises(Conflict, match="not of allocation allocation2"):
        give_back(rack["host2"], [0], lent, allocation="allocation2")
    rack["host2"].link("host1", lent).write(0, 0, b"x")


def test_a_key_that_is_dead_is_refused_by_its_lender(rack) -> None:
    """It died before it came: whoever uses it finds out, as of one that dies a moment later, and gives it back."""
    rack["host1"].lend(2)
    answer = rack["host1"].calls.export(epoch=1, indexes=[0, 1], borrower="host2")
    rack["host1"].calls.revoke(epoch=1, indexes=[1])
    host, life = rack["host2"], answer["incarnation"]
    assert host.calls.prepare(epoch=1, lender="host1", allocation_uuid="allocation1", **answer) == [0, 1]
    with pytest.raises(AccessRefused):
        host.link("host1", life).write(1, 0, b"x")
    host.link("host1", life).write(0, 0, b"x")
    assert give_back(host, [1], life) == []
    assert host.borrower.held("allocation1") == {("host1", life): [0]}


@pytest.mark.parametrize(
    "change",
    [{"keys": {"zero": {}}}, {"keys": {"0": {}}}, {"keys": []}, {"ticket": {}}, {"ticket": {"borrower": "host3"}}],
    ids=str,
)
def test_nonsense_is_refused(rack, change) -> None:
    rack["host1"].lend(1)
    answer = rack["host1"].calls.export(epoch=1, indexes=[0], borrower="host2")
    if "borrower" in change.get("ticket", {}):
        change = {"ticket": {**answer["ticket"], **change["ticket"]}}
    with pytest.raises(BadRequest):
        rack["host2"].calls.prepare(**{"epoch": 1, "lender": "host1", **answer, **change})
    assert rack["host2"].borrower.report() == {"lenders": []}


def test_another_transport_is_named(rack) -> None:
    rack["host1"].lend(1)
    answer = rack["host1"].calls.export(epoch=1, indexes=[0], borrower="host2")
    answer["ticket"]["driver"] = "tcp"
    with pytest.raises(BadRequest, match="speaks tcp and this host shm"):
        rack["host2"].calls.prepare(epoch=1, lender="host1", **answer)


def test_a_newer_key_takes_the_place_of_a_dead_one(rack) -> None:
    """A prepare was done, its answer was lost, and the controller ended the key."""
    rack["host1"].lend(2)
    life = rack.borrow_buffers([0, 1], allocation="")
    host = rack["host2"]
    late = rack["host1"].calls.export(epoch=1, indexes=[0], borrower="host2")
    rack["host1"].calls.revoke(epoch=1, indexes=[0])
    rack.borrow_buffers([0], allocation="allocation2")
    assert host.owner.told == [("arrived", "", [0, 1]), ("lost", "", [0]), ("arrived", "allocation2", [0])]
    host.link("host1", life).write(0, 0, b"x")
    host.link("host1", life).write(1, 0, b"x")
    with pytest.raises(Conflict, match="another key"):
        host.calls.prepare(epoch=1, lender="host1", allocation_uuid="", **late)
    assert give_back(host, [0], life, allocation="allocation2") == []
    assert host.borrower.report()["lenders"][0]["allocations"] == {"": [1]}


def test_a_key_that_is_being_given_back_is_not_replaced(rack, lent) -> None:
    host = rack["host2"]
    host.owner.stays = Conflict("the mirror is not written yet")
    give_back(host, [0], lent)
    rack["host1"].calls.revoke(epoch=1, indexes=[0])
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
    assert rack["host2"].borrower.report()["lenders"][0]["allocations"] == {"allocation1": [0]}


def test_a_promised_buffer_is_given_back_as_the_allocations_that_it_became(rack) -> None:
    """Its lender sleeps: it was borrowed without a new key."""
    rack["host1"].lend(1, "zombie")
    life = rack.borrow_buffers([0], allocation="")
    give_back(rack["host2"], [0], life)
    assert [item["allocation_uuid"] for item in rack.controller.released_buffers.values()] == ["allocation1"]
