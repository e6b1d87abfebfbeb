"""RAM extension by the agent, over a data plane that is played: what is on record, told again, given up, refused."""

import itertools

import pytest

from pondstack.domain.errors import BadRequest, Conflict, HostUnusable, NotFound, Unavailable
from pondstack_agent.data_plane.views import GuestState, LeaseState
from pondstack_rack.wait import wait_until

from ..lending.conftest import DEADLINE_SECONDS
from .conftest import BORROWER, CONSUMER, Killed

MEMORY, LOCAL, REMOTE = 8, 4, 4


@pytest.fixture
def lent(rack):
    """Two hosts lend 4 MiB each; an instance of a third one has borrowed, and its guest is there, paused."""
    for name in ("host1", "host2"):
        rack.lend(name, 4)
    rack.borrower.alloc(REMOTE)
    rack.borrower.data_plane.boot(CONSUMER, MEMORY)
    return rack


def extend(host, local=LOCAL, memory=MEMORY, disk=0):
    return host.calls.extend(consumer_uuid=CONSUMER, memory_mib=memory, local_mib=local, disk_mib=disk)


def unextend(host):
    return host.calls.unextend(consumer_uuid=CONSUMER)


def leases(host):
    """Count the leases of the data plane by lender."""
    found = {}
    for lease in host.data_plane.served[CONSUMER].leases:
        name = lease.lender.partition("@")[0]
        found[name] = found.get(name, 0) + 1
    return found


def test_what_was_borrowed_is_not_in_use_yet(lent) -> None:
    host = lent.borrower
    view = host.view()
    assert (view["state"], view["borrowed_mib"], view["extension"]) == ("active", REMOTE, None)
    assert "socket" not in view
    assert host.data_plane.served == {}


def test_a_guest_is_extended(lent) -> None:
    host = lent.borrower
    view = extend(host)["extension"]
    assert (view["state"], view["memory_mib"], view["local_mib"], view["limit_mib"]) == (
        "serving",
        MEMORY,
        LOCAL,
        LOCAL,
    )
    assert (view["resident_mib"], view["evicted_mib"], view["leases"]) == (4.0, 4.0, {"active": 4})
    assert leases(host) == {"host1": 2, "host2": 2}
    assert host.data_plane.mirrors[CONSUMER] == f"{host.conf.data_plane.mirror_folder}/{CONSUMER}.{BORROWER}"
    assert extend(host)["extension"] == view
    assert host.data_plane.told.count("attach") == 1


def test_the_limit_changes(lent) -> None:
    host = lent.borrower
    extend(host)
    assert extend(host, local=6)["extension"]["limit_mib"] == 6
    assert host.data_plane.served[CONSUMER].limit_mib == 6
    host.data_plane.limit(CONSUMER, 5)
    host.beat()
    assert host.data_plane.served[CONSUMER].limit_mib == 6


def test_a_part_has_no_room_with_lenders(lent) -> None:
    view = extend(lent.borrower, local=2, disk=2)["extension"]
    assert (view["memory_mib"], view["limit_mib"], view["leases"]) == (MEMORY, 2, {"active": 4})


def test_what_an_instance_is_to_have_is_reported(lent) -> None:
    """Its disk share only while it has a process; what is being given back no more."""
    host = lent.borrower

    def reported():
        return [(each["mib"], each["disk_mib"]) for each in host.agent.reporter.report().borrowed["shares"]]

    assert reported() == [(REMOTE, None)]
    extend(host, local=3, disk=1)
    told = host.agent.reporter.report().borrowed["shares"]
    assert told == [{"consumer_uuid": CONSUMER, "project_id": "", "guaranteed": True, "mib": REMOTE, "disk_mib": 1}]
    host.data_plane.end(CONSUMER)
    lent.turn(2)
    assert reported() == [(REMOTE, None)]
    host.release()
    assert reported() == []


@pytest.mark.parametrize(
    ("memory", "local", "disk"),
    [(8, 0, 0), (8, 8, 0), (8, -1, 0), (8, 3, 0), (4, 8, 0), (8, 1, 2), (8, 5, 4), (8, 5, -1)],
)
def test_a_split_that_is_none(lent, memory, local, disk) -> None:
    with pytest.raises(BadRequest, match="are to stay"):
        extend(lent.borrower, local=local, memory=memory, disk=disk)
    assert lent.borrower.view()["extension"] is None


def test_what_is_refused_leaves_nothing(lent) -> None:
    host = lent.borrower
    with pytest.raises(Conflict, match="has 8 MiB, not 7"):
        extend(host, memory=7)
    host.data_plane.refuses = "8 KiB are huge pages"
    with pytest.raises(Conflict, match="huge pages"):
        extend(host)
    assert host.view()["extension"] is None
    host.data_plane.end(CONSUMER)
    with pytest.raises(Conflict, match="no process"):
        extend(host)
    assert host.release()
    lent.turn(2)
    with pytest.raises(NotFound, match="alloc_ext first"):
        extend(host)


def test_a_swap_disk_is_no_guest(rack) -> None:
    rack.borrower.attach_swap(4)
    with pytest.raises(NotFound, match="alloc_ext first"):
        extend(rack.borrower)
    assert unextend(rack.borrower) is False


def test_memory_is_not_given_back_under_a_guest(lent) -> None:
    host = lent.borrower
    extend(host)
    with pytest.raises(Conflict, match="runs on its remote memory"):
        host.release()
    assert host.view()["state"] == "active"
    assert leases(host) == {"host1": 2, "host2": 2}
    host.data_plane.end(CONSUMER)
    assert host.release()
    assert host.data_plane.mirrors == {}
    lent.turn(2)
    assert lent.free()
    assert host.remote.views() == []


def test_a_guest_that_ends_keeps_its_buffers(lent) -> None:
    host = lent.borrower
    extend(host)
    host.data_plane.end(CONSUMER)
    host.beat()
    assert host.view()["extension"] is None
    assert host.view()["borrowed_mib"] == REMOTE
    host.data_plane.boot(CONSUMER, MEMORY, pid=4712, started=2)
    assert extend(host)["extension"]["state"] == "serving"
    assert host.data_plane.served[CONSUMER].pid == 4712


def test_a_hard_reboot_between_two_looks(lent) -> None:
    """The new process is there before the data plane has noticed the end of the former one."""
    host = lent.borrower
    extend(host)
    host.data_plane.boot(CONSUMER, MEMORY, pid=4712, started=2)
    extend(host)
    assert host.data_plane.served[CONSUMER].pid == 4712
    assert leases(host) == {"host1": 2, "host2": 2}


def test_the_data_plane_is_told_anew_after_its_death(lent) -> None:
    host = lent.borrower
    extend(host)
    host.data_plane.kill()
    assert leases(host) == {}
    host.beat()
    assert leases(host) == {"host1": 2, "host2": 2}
    host.data_plane.served.clear()  # its folder is gone, too
    host.beat()
    assert leases(host) == {"host1": 2, "host2": 2}


def test_nobody_serves_when_a_guest_is_extended(lent) -> None:
    host = lent.borrower
    host.data_plane.gone = True
    with pytest.raises(Unavailable, match="no data plane serves"):
        extend(host)
    assert host.view()["extension"]["state"] == "waiting"
    host.data_plane.gone = False
    host.beat()
    assert host.view()["extension"]["state"] == "serving"
    assert leases(host) == {"host1": 2, "host2": 2}


def test_pages_come_home(lent) -> None:
    host = lent.borrower
    extend(host)
    assert unextend(host) is True
    assert host.data_plane.served == {}
    assert host.view()["extension"] is None
    assert unextend(host) is False
    assert host.release()


def test_pages_that_take_long_to_come_home(lent) -> None:
    host = lent.borrower
    host.conf.set_override("home_seconds", 0.1, group="data_plane")
    host.restart()
    extend(host)
    host.data_plane.comes_home = False
    with pytest.raises(Unavailable, match="still on their way home"):
        unextend(host)
    assert host.view()["extension"]["state"] == "homing"
    with pytest.raises(Conflict, match="on their way home"):
        extend(host)
    host.restart()
    host.beat()
    assert host.data_plane.served[CONSUMER].state is GuestState.DETACHING
    host.data_plane.comes_home = True
    host.beat()
    assert host.view()["extension"] is None


def test_a_lender_takes_its_memory_back(lent) -> None:
    host = lent.borrower
    extend(host)
    lent.reclaim("host1", 4)
    lent.turn(3)
    assert lent["host1"].lending.get_lending()["buffers"] == []
    lent.turn(2)
    assert leases(host) == {"host2": 4}
    assert host.view()["borrowed_mib"] == REMOTE


def test_buffers_are_in_use_until_pages_have_left_them(lent) -> None:
    host = lent.borrower
    host.conf.set_override("leave_seconds", 0.1, group="data_plane")
    host.restart()
    extend(host)
    host.data_plane.leaves = False
    lent.reclaim("host1", 4)
    lent.turn(2)
    assert lent.controller.states()["releasing"] == 2
    host.data_plane.leaves = True
    lent.turn(4)
    assert lent["host1"].lending.get_lending()["buffers"] == []


def test_what_a_lender_lost_is_borrowed_elsewhere(lent) -> None:
    host = lent.borrower
    extend(host)
    lender = next(each.lender for each in host.data_plane.served[CONSUMER].leases if each.lender.startswith("host1"))
    host.data_plane.lose(CONSUMER, lender)
    host.beat()
    lent.turn(2)
    found = host.data_plane.served[CONSUMER].leases
    assert {each.state for each in found} == {LeaseState.ACTIVE}
    assert len(found) == REMOTE


def test_a_key_that_its_lender_refuses_holds_up_no_other(lent) -> None:
    host = lent.borrower
    held = next(each for each in host.borrower._store.all() if each.lender == "host1")
    host.data_plane.dead_keys = {(held.name, held.keys[min(held.buffers)].number)}
    extend(host)
    host.beat()
    assert leases(host) == {"host1": 1, "host2": 2}
    host.data_plane.dead_keys = set()
    host.beat()
    assert leases(host) == {"host1": 2, "host2": 2}


def test_leases_that_are_not_held_are_left(lent) -> None:
    host = lent.borrower
    extend(host)
    host.data_plane.lease(CONSUMER, "host7@x", {}, [{"number": 99}])
    host.beat()
    host.data_plane.view(CONSUMER)
    assert leases(host) == {"host1": 2, "host2": 2}


def test_silence_is_no_answer(lent) -> None:
    """Buffers stay in use while a frozen data plane may write to them."""
    host = lent.borrower
    extend(host)
    host.data_plane.silent = True
    lent.reclaim("host1", 4)
    lent.turn(2)
    assert lent.controller.states()["releasing"] == 2
    with pytest.raises(Unavailable, match="does not answer"):
        unextend(host)
    assert host.view()["extension"]["problem"] == "the data plane does not answer"


def test_evicted_pages_are_touched(lent) -> None:
    host = lent.borrower
    assert host.agent.served(CONSUMER) is None
    assert host.agent.served("another") is None
    extend(host)
    assert host.agent.served(CONSUMER) == MEMORY * 2**20
    host.data_plane.gone = True
    with pytest.raises(Unavailable):
        host.agent.served(CONSUMER)
    host.data_plane.end(CONSUMER)
    assert host.agent.served(CONSUMER) is None


def test_mirrors_have_a_bound(lent) -> None:
    host = lent.borrower
    host.conf.set_override("mirror_mib", 7, group="data_plane")
    host.restart()
    assert host.calls.get_mirror_room() == {"total_mib": 7, "used_mib": 0}
    with pytest.raises(Unavailable, match="mirror_mib"):
        extend(host)
    host.conf.set_override("mirror_mib", 8, group="data_plane")
    host.restart()
    extend(host)
    assert host.calls.get_mirror_room() == {"total_mib": 8, "used_mib": 8}
    unextend(host)
    assert host.calls.get_mirror_room() == {"total_mib": 8, "used_mib": 0}


def test_a_host_without_a_data_plane(lent) -> None:
    host = lent["host1"]
    host.data_plane = None
    host.restart()
    with pytest.raises(HostUnusable, match="runs no data plane"):
        host.alloc(2)
    assert host.remote.views() == []
    assert host.calls.get_mirror_room() == {"total_mib": 0, "used_mib": 0}


def test_a_data_plane_that_was_taken_away(lent) -> None:
    """What was borrowed for a guest that has ended goes back all the same."""
    host = lent.borrower
    extend(host)
    host.data_plane = None
    host.restart()
    assert host.view()["extension"] is None
    assert host.release()
    lent.turn(2)
    assert lent.free()
    assert host.remote.views() == []


def test_the_agent_dies_while_it_extends_and_brings_home(lent) -> None:
    """At each step; nova-compute does not call again, and all goes on by itself."""
    host = lent.borrower
    for step in itertools.count(1):
        died = False
        host.fuse.left = step
        try:
            extend(host)
        except Killed:
            died = True
        finally:
            host.fuse.left = 0
        host.restart()
        host.beat()
        if host.view()["extension"] is None:
            assert host.data_plane.served == {}, step
            extend(host)
        assert leases(host) == {"host1": 2, "host2": 2}, step
        host.fuse.left = step
        try:
            unextend(host)
        except Killed:
            died = True
        finally:
            host.fuse.left = 0
        host.restart()
        host.beat()
        host.beat()
        if host.view()["extension"] is not None:
            assert host.view()["extension"]["state"] == "serving", step  # it died before the order was on record
            unextend(host)
        assert host.data_plane.served == {}, step
        if not died:
            break
    assert step > 10


def test_a_frozen_lender_keeps_no_guest_waiting(lent) -> None:
    """Over the stand-in nothing waits; what is asked back of a lender that is frozen is given back all the same."""
    host = lent.borrower
    extend(host)
    with lent["host1"].frozen():
        host.restart()
        host.beat()
        assert leases(host) == {"host1": 2, "host2": 2}
    assert wait_until(lambda: host.view()["borrowed_mib"] == REMOTE, DEADLINE_SECONDS)
