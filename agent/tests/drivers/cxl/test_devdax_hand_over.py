"""Slices that change their host with what is in them: two hosts without coherent caches, killed at every step.

| who | may write |
|---|---|
| the guest at the source | until its QEMU ends |
| the source | nothing: its caches are written back before it says that it let go |
| the guest at the destination | from when the device says that slices are its host's alone |
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.tests.drivers.cxl.hosts import Killed, Rack
from agent.tests.drivers.cxl.kernel import SLICE_BYTES
from pondstack.domain.errors import BadRequest, Conflict, DeviceFailed, HostUnusable, NotFound, PermissionHeld
from pondstack.domain.model import Extent, indexes_of
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl import device_memory
from pondstack_rdma import cpu_cache

EXTENTS = (Extent(1, 2), Extent(3, 1))
BEFORE, AFTER = "written at the source", "written at the destination"
ATTACH_STEPS, DETACH_STEPS = 10, 12
"""Of two extents; `test_the_steps_are_counted` holds them."""


class Move:
    """A guest of host1 that moves to host2, as the controller and both nova-computes see to it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, zero: bool = False) -> None:
        self.rack, self.zero = Rack(folder, patch), zero
        self.device, self.content = self.rack.device, self.rack.device.content
        self.source, self.destination = self.rack.hosts["host1"], self.rack.hosts["host2"]
        self.own: Grant = self.rack.harness().grant("host1", *EXTENTS, tag="own")
        self.heir = replace(self.own, allocation_uuid="heir", host="host2", handed=True)

    def begin(self) -> None:
        """Have the guest write at the source, and the device let its heir in."""
        for backing in self.source.agent(zero=self.zero).attach(self.own):
            with self.source.guest(self.own, backing, BEFORE):
                pass
        self.device.add_heir("host2", EXTENTS, tag="heir", owner="own", epoch=1)

    def switch(self) -> None:
        """Have the device follow the source's release."""
        self.device.revoke(indexes_of(EXTENTS), tag="own", epoch=1)

    def found(self) -> list[str]:
        """Return what the guest finds at the destination, in each extent."""
        seen = []
        for backing in self.destination.agent(zero=self.zero).backings("heir"):
            with self.destination.guest(self.heir, backing, AFTER) as text:
                seen.append(text[: len(BEFORE)].decode())
        return seen


@pytest.fixture(params=[False, True], ids=["sanitize=device", "sanitize=host"])
def move(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Move:
    return Move(tmp_path, monkeypatch, zero=request.param)


def test_the_steps_are_counted(move: Move) -> None:
    move.begin()
    assert move.destination.agent().attach(move.heir)
    assert len(move.destination.steps) == ATTACH_STEPS
    assert set(move.destination.steps) == {"record", "create", "range", "dirty", "devdax", "state"} | {
        "shrink",  # the device that the kernel has over all of a new region
    }
    assert move.source.agent(zero=move.zero).detach("own")
    assert len(move.source.steps) == DETACH_STEPS
    assert set(move.source.steps) == {"offline", "write back", "unbind", "shrink", "delete", "clean", "forget"}


def test_the_destination_finds_what_the_source_wrote(move: Move) -> None:
    move.begin()
    there = move.destination.agent(zero=move.zero)
    there.attach(move.heir)
    assert move.source.agent(zero=move.zero).heir("own") == "host2"
    assert not there.take_up("heir")
    assert move.source.agent(zero=move.zero).detach("own")
    assert not there.take_up("heir"), "the device has not been told yet"
    move.switch()
    assert there.take_up("heir")
    assert move.found() == [BEFORE, BEFORE]


def test_what_has_reached_memory_is_no_reason_to_refuse_or_to_zero(move: Move) -> None:
    """CPUs write their caches back at any time; what is handed over is not zero then."""
    move.begin()
    move.source.kernel.evict()
    there = move.destination.agent(zero=move.zero)
    there.attach(move.heir)
    move.source.agent(zero=move.zero).detach("own")
    move.switch()
    assert there.take_up("heir")
    assert move.found() == [BEFORE, BEFORE]


def test_what_the_destination_had_in_its_caches_is_not_what_its_guest_reads(move: Move) -> None:
    """It had the slices before, or its CPUs prefetched: both are older than what the source has written."""
    move.begin()
    there = move.destination.agent(zero=move.zero)
    for backing in there.attach(move.heir):
        move.destination.kernel.load(backing.path, 0, SLICE_BYTES)
    move.source.agent(zero=move.zero).detach("own")
    move.switch()
    assert there.take_up("heir")
    assert move.found() == [BEFORE, BEFORE]


def test_the_source_gets_them_back_later(move: Move) -> None:
    """Its caches have nothing of the first time."""
    move.begin()
    there = move.destination.agent(zero=move.zero)
    there.attach(move.heir)
    move.source.agent(zero=move.zero).detach("own")
    move.switch()
    assert there.take_up("heir")
    assert move.found() == [BEFORE, BEFORE]
    move.device.add_heir("host1", EXTENTS, tag="back", owner="heir", epoch=1)
    back = replace(move.own, allocation_uuid="back", handed=True)
    here = move.source.agent(zero=move.zero)
    backings = here.attach(back)
    there.detach("heir")
    move.device.revoke(indexes_of(EXTENTS), tag="heir", epoch=1)
    assert here.take_up("back")
    for backing in backings:
        with move.source.guest(back, backing, AFTER) as found:
            assert found == AFTER.encode()


@pytest.mark.parametrize("reboot", [False, True], ids=["killed", "rebooted"])
@pytest.mark.parametrize("at", range(ATTACH_STEPS))
def test_a_destination_that_was_killed_anywhere_changes_no_byte(move: Move, at: int, reboot: bool) -> None:
    move.begin()
    with pytest.raises(Killed):
        move.destination.agent(kill_at=at, zero=move.zero).attach(move.heir)
    if reboot:
        move.destination.kernel.reboot()
    there = move.destination.agent(zero=move.zero)
    there.attach(move.heir)
    move.source.agent(zero=move.zero).detach("own")
    move.switch()
    assert move.destination.agent(zero=move.zero).take_up("heir")
    assert move.found() == [BEFORE, BEFORE]


@pytest.mark.parametrize("at", range(ATTACH_STEPS))
def test_a_destination_that_gives_up_anywhere_changes_no_byte(move: Move, at: int) -> None:
    """The migration fails, and the guest runs on at its source, whose caches have what it wrote."""
    move.begin()
    with pytest.raises(Killed):
        move.destination.agent(kill_at=at, zero=move.zero).attach(move.heir)
    there = move.destination.agent(zero=move.zero)
    there.detach("heir")
    assert there.attached() == ()
    here = move.source.agent(zero=move.zero)
    for backing in here.backings("own"):
        with move.source.guest(move.own, backing, BEFORE) as found:
            assert found == BEFORE.encode()


@pytest.mark.parametrize("at", range(DETACH_STEPS))
def test_a_source_that_was_killed_anywhere_loses_no_byte(move: Move, at: int) -> None:
    move.begin()
    move.destination.agent(zero=move.zero).attach(move.heir)
    with pytest.raises(Killed):
        move.source.agent(kill_at=at, zero=move.zero).detach("own")
    here = move.source.agent(zero=move.zero)
    here.detach("own")
    assert here.attached() == ()
    move.switch()
    assert move.destination.agent(zero=move.zero).take_up("heir")
    assert move.found() == [BEFORE, BEFORE]


def test_a_source_that_restarts_as_it_hands_over_says_what_it_lost(move: Move) -> None:
    """What its CPU caches had is gone, and a later write-back of what is online again would prove nothing."""
    move.begin()
    move.destination.agent(zero=move.zero).attach(move.heir)
    assert not move.source.agent(zero=move.zero).lost_caches("own")
    move.source.kernel.reboot()
    here = move.source.agent(zero=move.zero)
    assert [item.allocation_uuid for item in here.attached()] == ["own"], "its guest is started anew, if it stays"
    assert here.lost_caches("own")
    assert move.source.agent(zero=move.zero).lost_caches("own")
    move.device.revoke(indexes_of(EXTENTS), tag="heir", epoch=1)
    assert not here.lost_caches("own"), "that move has failed, and the guest began anew"
    move.device.add_heir("host2", EXTENTS, tag="next", owner="own", epoch=1)
    assert not here.lost_caches("own")


def test_what_was_handed_over_is_zeroed_in_the_end(move: Move) -> None:
    move.begin()
    there = move.destination.agent(zero=move.zero)
    there.attach(move.heir)
    move.source.agent(zero=move.zero).detach("own")
    move.switch()
    there.take_up("heir")
    assert move.found() == [BEFORE, BEFORE]
    there.detach("heir")
    move.device.revoke(indexes_of(EXTENTS), tag="heir", epoch=1)
    if not move.zero:
        assert AFTER.encode() in move.content, "what its host wrote is in memory before the device zeroes"
        for index in indexes_of(EXTENTS):
            move.device.sanitize(index, epoch=1)
    assert not any(move.content)


@pytest.mark.parametrize("lost", [False, True])
def test_leftovers_at_the_destination_are_no_reason_to_zero(move: Move, lost: bool) -> None:
    """Devices over the same slices that are on nobody's record: of an agent whose state folder was lost."""
    move.begin()
    move.source.kernel.evict()
    move.destination.agent(zero=move.zero).attach(move.heir)
    for record in move.destination.state.rglob("*.json"):
        record.unlink()
    there = move.destination.agent(zero=move.zero)
    if lost:
        assert there.attached() == ()  # nobody maps them: they go
    there.attach(move.heir)
    move.source.agent(zero=move.zero).detach("own")
    move.switch()
    assert there.take_up("heir")
    assert move.found() == [BEFORE, BEFORE]


def test_nobody_else_is_let_in(move: Move) -> None:
    move.begin()
    there = move.destination.agent(zero=move.zero)
    for wrong in (replace(move.heir, handed=False), replace(move.heir, allocation_uuid="another")):
        with pytest.raises(PermissionHeld):
            there.attach(wrong)
    with pytest.raises(NotFound):
        there.take_up("heir")


def test_slices_that_are_given_back_are_mapped_by_nobody(move: Move) -> None:
    [backing, _] = move.source.agent().attach(move.own)
    move.source.kernel.guests["of nobody's record"] = backing.path
    here = move.source.agent(zero=move.zero)
    with pytest.raises(DeviceFailed, match="a process maps"):
        here.detach("own")
    assert "own" in here.stuck()
    move.source.kernel.guests.clear()
    assert here.detach("own")


def test_what_is_going_is_not_attached_again(move: Move) -> None:
    here = move.source.agent()
    here.attach(move.own)
    assert here.begin_detach("own")
    with pytest.raises(Conflict, match="going offline"):
        here.attach(move.own)


def test_a_guest_of_such_slices_cannot_leave_them_and_run_on(move: Move) -> None:
    here = move.source.agent()
    here.attach(move.own)
    with pytest.raises(BadRequest, match="live-migrate"):
        here.vacate("own")


def test_what_was_a_node_stays_one(move: Move) -> None:
    """The option says what comes, not what is there."""
    kinds: list[Callable[[], str]] = []
    move.source.agent(backing="node").attach(move.own)
    for backing in ("node", "devdax"):
        here = move.source.agent(backing=backing)
        kinds += [item.kind for item in (*here.backings("own"), *here.attach(move.own))]
    assert set(kinds) == {"node"}
    assert move.source.agent().detach("own")


def test_other_purposes_need_a_node(move: Move) -> None:
    base = move.rack.harness().held_for("base", Extent(0, 1), tag="base")
    assert [item.kind for item in move.source.agent().attach(base)] == ["node"]


def test_a_node_hands_nothing_over(move: Move) -> None:
    here = move.source.agent(backing="node")
    assert not here.hands_over
    here.attach(move.own)
    with pytest.raises(DeviceFailed, match="not handed over"):
        here.take_up("own")


def test_a_host_that_cannot_write_back_has_none(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_cache, "INSTRUCTION", "")
    assert device_memory.cpu_cache is cpu_cache
    here = move.source.agent()
    assert not here.hands_over
    with pytest.raises(HostUnusable, match="no_write_back"):
        here.attach(move.own)
    assert here.attached() == ()


def test_caches_that_are_not_written_back_let_nothing_go(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    move.begin()
    monkeypatch.setattr(move.source.kernel, "write_back", lambda *_: "Operation not supported")
    here = move.source.agent(zero=move.zero)
    with pytest.raises(DeviceFailed, match="not written back"):
        here.detach("own")
    assert [item.allocation_uuid for item in here.attached()] == ["own"]


def test_slices_that_somebody_maps_do_not_look_free_without_a_table(move: Move) -> None:
    """The state folder was lost, and the device guards itself: nobody tells whose they are."""
    grant = move.rack.harness().grant("host1", Extent(0, 1), tag="lost")
    [backing] = move.source.agent(table=False).attach(grant)
    for record in move.source.state.rglob("*.json"):
        record.unlink()
    assert move.source.agent(table=False).attached() == ()
    move.source.kernel.guests["of nobody's record"] = backing.path
    [found] = move.source.agent(table=False).attached()
    assert (found.extents, found.in_use, found.backing) == ((Extent(0, 1),), True, "devdax")
