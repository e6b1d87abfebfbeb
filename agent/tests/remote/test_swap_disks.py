"""Swap disks of instances: served, grown, shrunk, lost, released, by an agent that dies at any step."""

import itertools

import pytest

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, InUse, PondError, Unavailable
from pondstack_agent.data_plane.guest_memory import GuestMemory
from pondstack_agent.remote.records import disk_uuid

from .conftest import BORROWER, CONSUMER, Killed, Rack, RemoteHost

DISK = disk_uuid(CONSUMER)


@pytest.fixture
def lent(rack: Rack) -> Rack:
    """Two hosts lend 4 MiB each; a third one is to borrow."""
    for name in ("host1", "host2"):
        rack.lend(name, 4)
    assert rack.borrower
    for host in rack.hosts.values():  # to begin a host may take longer than it may be silent
        host.beat()
    return rack


def blocks(host: RemoteHost):
    assert host.data_plane
    return host.data_plane.blocks


def leases(host: RemoteHost) -> dict[str, int]:
    return host.swap()["disk"]["leases"]


def test_a_disk_is_served_and_given_back(lent) -> None:
    """By the instance's UUID for the controller, by its own for the data plane."""
    host = lent.borrower
    view = host.attach_swap(4)
    assert (view["consumer_uuid"], view["state"], view["mib"], view["borrowed_mib"]) == (CONSUMER, "active", 4, 4)
    assert view["socket"] == str(host.conf.data_plane.folder + f"{DISK}.sock") == blocks(host).served[DISK].socket
    assert (view["disk"]["state"], view["disk"]["leases"], view["guaranteed"]) == ("serving", {"active": 4}, False)
    assert blocks(host).asked[DISK] == (f"{host.conf.data_plane.mirror_folder}/{DISK}.{BORROWER}", 0)
    loans = lent.controller.ledger.loans.allocations()
    assert [(loan.consumer_uuid, loan.guaranteed) for loan in loans] == [(CONSUMER, False)]
    assert host.attach_swap(4) == host.swap()
    assert host.calls.get_remote(consumer_uuid=CONSUMER) is None
    assert host.release_swap()
    assert blocks(host).served == {}
    lent.turn(2)
    assert lent.free()
    assert host.calls.get_swap(consumer_uuid=CONSUMER) is None
    assert not host.release_swap()


def test_beside_remote_memory_of_the_same_instance(lent) -> None:
    host = lent.borrower
    host.alloc(2)
    assert host.attach_swap(4)["borrowed_mib"] == 4
    assert (host.view()["borrowed_mib"], host.view()["extension"]) == (2, None)
    host.release()
    lent.turn(2)
    assert (host.swap()["borrowed_mib"], leases(host)) == (4, {"active": 4})
    assert lent.controller.states() == {"free": 4, "online": 4}


def test_it_grows_and_shrinks_with_what_is_lent(lent) -> None:
    """The disk is as large as it is from the beginning."""
    host = lent.borrower
    assert (host.attach_swap(12)["borrowed_mib"], blocks(host).served[DISK].mib) == (8, 12)
    lent.lend("host3", 8)
    host.beat()
    lent.turn_until(lambda: leases(host) == {"active": 12})
    blocks(host).leaves = False
    lent.reclaim("host1", 4)
    lent.turn(2)
    assert not lent.done("host1"), "its pages have not left"
    blocks(host).leaves = True
    lent.turn_until(lambda: lent.done("host1"))
    assert lent["host1"].lending.get_lending()["buffers"] == []
    lent.turn_until(lambda: leases(host) == {"active": 12})  # host3 had more
    assert blocks(host).served[DISK].mib == 12


def test_without_any_lender_and_controller(rack) -> None:
    host = rack.borrower
    rack.controller.away = True
    assert (host.attach_swap(2)["state"], leases(host)) == ("active", {})
    rack.controller.away = False
    rack.lend("host1", 2)
    host.beat()
    rack.turn_until(lambda: leases(host) == {"active": 2})


def test_a_data_plane_that_dies_is_told_anew(lent) -> None:
    host = lent.borrower
    host.attach_swap(4)
    host.data_plane.gone = True
    host.restart()
    assert (host.swap()["disk"]["state"], host.swap()["state"]) == ("waiting", "active")
    with pytest.raises(Unavailable):
        host.attach_swap(4)
    host.data_plane.gone = False
    host.data_plane.kill()
    assert leases(host) == {}
    host.beat()
    assert leases(host) == {"active": 4}
    assert len(blocks(host).served) == 1


@pytest.mark.parametrize("how", ["failed", "gone"])
def test_pages_that_are_lost_are_no_zeros(lent, how) -> None:
    """While its instance runs; with its next start the disk is made anew."""
    host = lent.borrower
    host.attach_swap(4)
    host.data_plane.processes[CONSUMER] = GuestMemory(4711, 1, "/memfd:x", 64)
    if how == "failed":
        blocks(host).lose(DISK)
    else:
        del blocks(host).served[DISK]
    for _ in range(2):
        with pytest.raises(Unavailable, match="makes it anew, empty"):
            host.attach_swap(4)
        host.beat()
    assert host.swap()["disk"]["state"] == ("failed" if how == "failed" else "waiting")
    host.data_plane.end(CONSUMER)
    host.beat()
    assert host.swap()["disk"]["state"] != "serving", "it has not started yet"
    assert host.attach_swap(4)["disk"]["state"] == "serving"
    host.beat()
    assert leases(host) == {"active": 4}


def test_a_disk_that_is_open_is_not_released(lent) -> None:
    host = lent.borrower
    host.attach_swap(4)
    blocks(host).open(DISK, 1)
    with pytest.raises(Conflict, match="stop the instance first"):
        host.release_swap()
    blocks(host).open(DISK, 0)
    assert host.release_swap()


def test_a_release_waits_for_the_data_plane(lent) -> None:
    """Until then its mirror is there, and counts."""
    host = lent.borrower
    host.attach_swap(4)
    host.data_plane.gone = True
    assert host.release_swap()
    with pytest.raises(Conflict, match="being released"):
        host.attach_swap(4)
    assert host.calls.get_mirror_room()["used_mib"] == 4
    host.data_plane.gone = False
    lent.turn(3)
    assert (lent.free(), blocks(host).served, host.calls.get_mirror_room()["used_mib"]) == (True, {}, 0)


def test_what_is_refused(lent) -> None:
    """It leaves nothing behind."""
    host = lent.borrower
    for mib in (0, -1):
        with pytest.raises(BadRequest, match="whole buffers"):
            host.attach_swap(mib)
    with pytest.raises(BadRequest, match="UUID"):
        host.calls.attach_swap(consumer_uuid="../../etc", mib=1)
    with pytest.raises(Unavailable, match=r"\[data_plane\] mirror_mib"):
        host.attach_swap(65)
    host.conf.set_override("disk_user", "nobody-at-all", group="data_plane")
    host.restart()
    with pytest.raises(HostUnusable, match="disk_user"):
        host.attach_swap(4)
    assert host.remote.views() == []
    assert blocks(host).served == {}


def test_another_size_is_a_conflict(lent) -> None:
    host = lent.borrower
    host.attach_swap(4)
    with pytest.raises(Conflict, match="has a swap disk of 4 MiB"):
        host.attach_swap(8)


def test_mirrors_of_guests_and_disks_share_the_room(lent) -> None:
    host = lent.borrower
    host.attach_swap(4)
    host.conf.set_override("mirror_mib", 10, group="data_plane")
    host.restart()
    assert host.calls.get_mirror_room() == {"total_mib": 10, "used_mib": 4}
    host.data_plane.boot(CONSUMER, 8)
    host.alloc(2)
    with pytest.raises(Unavailable, match="4 of 10 MiB"):
        host.calls.extend(consumer_uuid=CONSUMER, memory_mib=8, local_mib=6)


def test_a_host_without_a_data_plane(rack) -> None:
    host = rack.borrower
    host.data_plane = None
    host.restart()
    with pytest.raises(HostUnusable, match="runs no data plane"):
        host.attach_swap(4)
    assert host.remote.views() == []


def test_killed_at_each_step(lent) -> None:
    """The caller repeats what it did not hear of. Ledger, data plane and agent agree in the end."""
    host = lent.borrower
    for step in itertools.count(1, 3):
        died = False
        for work in (lambda: host.attach_swap(2), host.release_swap):
            host.fuse.left = step
            try:
                work()
            except Killed:
                died = True
                host.restart()
            finally:
                host.fuse.left = 0
            if work != host.release_swap:
                assert host.attach_swap(2)["state"] == "active", step
                host.beat()
                assert leases(host) == {"active": 2}, step
        host.release_swap()
        lent.turn(3)
        assert lent.free(), (step, lent.controller.ledger.buffers.find())
        assert (host.remote.views(), blocks(host).served) == ([], {}), step
        if not died:
            break
    assert step > 15


def test_what_nobody_comes_back_for_is_undone(lent) -> None:
    host = lent.borrower
    host.data_plane.silent = True
    with pytest.raises(PondError):
        host.attach_swap(4)
    host.data_plane.silent = False
    host.now += 4000
    host.beat()
    lent.turn(2)
    assert (host.remote.views(), blocks(host).served, lent.free()) == ([], {}, True)


def end_swap(host: RemoteHost) -> bool:
    """Have the leader end the consumer's disk, which Nova forgot."""
    found = host.calls.end_swap(epoch=1, consumer_uuid=CONSUMER)
    host.later.run()
    return found


def test_a_disk_that_nova_forgot_is_reported_and_ended(lent) -> None:
    """Not while its instance runs or has it open, and not when Nova has just asked for it."""
    host = lent.borrower
    host.attach_swap(4)
    reported = host.agent.reporter.report().borrowed
    assert reported["swap_disks"] == {CONSUMER: 4}
    assert [(each["consumer_uuid"], each["guaranteed"], each["mib"]) for each in reported["shares"]] == [
        (CONSUMER, False, 4)
    ]
    with pytest.raises(InUse, match="less than a minute"):
        end_swap(host)
    host.now += 61.0
    host.data_plane.processes[CONSUMER] = GuestMemory(4711, 1, "/memfd:x", 64)
    with pytest.raises(InUse, match="runs"):
        end_swap(host)
    host.data_plane.end(CONSUMER)
    blocks(host).open(DISK, 1)
    with pytest.raises(InUse, match="open"):
        end_swap(host)
    blocks(host).open(DISK, 0)
    host.attach_swap(4)
    with pytest.raises(InUse, match="less than a minute"):
        end_swap(host)
    host.now += 61.0
    assert end_swap(host)
    assert host.agent.reporter.report().borrowed["swap_disks"] == {}
    lent.turn(2)
    assert (lent.free(), blocks(host).served) == (True, {})
    assert not end_swap(host)
