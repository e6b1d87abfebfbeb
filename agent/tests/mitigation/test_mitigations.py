"""The verb: room first, then pages, then the record, then the slices; aborted, failed, killed at each step."""

import pytest

from pondstack.domain.errors import BadRequest, Conflict, InUse, NoLocalRoom, NotFound, StaleEpoch
from tests.fixtures.rpc_call import call

from .mitigated_host import EPOCH, PAGES, POOL, Killed, verbs_of


def test_pages_move_and_slices_go_back_while_the_guest_runs(host) -> None:
    begun = host.mitigate()
    assert (begun.state, begun.pages_total, begun.pages_moved) == ("moving", PAGES, 0)
    seen = []
    for step in ("chunk", "cgroup"):
        host.at[step] = lambda step=step: seen.append((step, host.now().pages_moved))
    host.rig.later.run()
    assert seen == [("chunk", 0), ("cgroup", 256)]
    done = host.now()
    assert (done.state, done.pages_moved, done.reason) == ("mitigated", PAGES, "")
    assert host.kernel.running
    assert host.rig.attached() == set()
    assert host.rig.controller.held == {}
    assert host.rig.attachment() is None
    with pytest.raises(Conflict):
        host.rig.attach("op1")


def test_a_repetition_does_nothing_twice(host) -> None:
    first = host.mitigate()
    assert host.mitigate() == first
    assert host.mitigate("other").operation_id == "m1"  # one is under way
    host.rig.later.run()
    assert host.kernel.moves == 1
    assert host.mitigate().state == "mitigated"
    assert host.rig.controller.calls.count("release") == 1


def test_without_room_nothing_moves(host) -> None:
    host.kernel.free_mib = 11
    with pytest.raises(NoLocalRoom, match="migrate the guest"):
        host.mitigate()
    host.rig.later.run()
    assert host.now() is None
    assert (host.kernel.moves, host.kernel.policy) == (0, POOL)
    host.kernel.free_mib = 12
    assert host.mitigate().state == "moving"


def test_aborted_between_two_chunks(host) -> None:
    host.mitigate()
    host.at["chunk"] = lambda: call(host.led.abort_mitigation, epoch=EPOCH, consumer_uuid="vm1")
    host.rig.later.run()
    assert (host.now().state, host.now().pages_moved) == ("aborted", 256)
    assert host.kernel.policy == POOL
    assert len(host.rig.attached()) == 1
    host.at.clear()
    host.mitigate("m2")
    host.rig.later.run()
    assert (host.now().state, host.now().pages_total) == ("mitigated", 256)


def test_pinned_pages_keep_the_slices(host) -> None:
    host.kernel.pinned = 3
    host.mitigate()
    host.rig.later.run()
    assert host.now().state == "failed"
    assert "3 pages of guest vm1 stay on node 1" in host.now().reason
    host.rig.beat()
    assert len(host.rig.attached()) == 1


def test_a_guest_that_ends_meanwhile(host) -> None:
    host.mitigate()
    host.at["chunk"] = lambda: setattr(host.kernel, "running", False)
    host.rig.later.run()
    assert host.now().state == "failed"
    assert host.rig.detach("d1")
    host.rig.later.run()
    assert host.rig.controller.held == {}


@pytest.mark.parametrize("step", ["record", "chunk", "cgroup", "mitigated", "release"])
def test_killed_at_each_step(host, step: str) -> None:
    host.kill_at = step
    if step != "record":
        host.mitigate()
    with pytest.raises(Killed):
        host.rig.later.run() if step != "record" else host.mitigate()
    moved_for_good = host.kernel.policy == 0
    assert len(host.rig.attached()) == 1
    host.restart()
    if moved_for_good:
        assert host.now().state == "mitigated"
    else:
        assert step == "record" or (host.now().state, "restarted" in host.now().reason) == ("failed", True)
        assert len(host.rig.attached()) == 1
        host.mitigate("m2")
        host.rig.later.run()
    assert host.rig.attached() == set()
    assert host.rig.controller.held == {}


def test_what_was_given_back_is_not_given_back_again(host) -> None:
    host.mitigate()
    host.rig.later.run()
    released: list[None] = []
    host.at["release"] = lambda: released.append(None)
    host.restart()
    assert released == []
    assert host.now().state == "mitigated"


def test_what_the_driver_keeps_is_given_back_later(host, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(host.driver, "vacate", fail_in_use)
        host.mitigate()
        host.rig.later.run()
        assert host.now().state == "mitigated"
        assert len(host.rig.attached()) == 1
    host.rig.beat()
    assert host.rig.attached() == set()


def fail_in_use(_allocation: str) -> None:
    raise InUse("not yet")


def test_who_has_nothing_on_a_node_is_refused(host) -> None:
    with pytest.raises(NotFound, match="no pool memory"):
        call(host.led.mitigate, epoch=EPOCH, operation_id="m1", consumer_uuid="vm2")
    with pytest.raises(NotFound):
        call(host.led.abort_mitigation, epoch=EPOCH, consumer_uuid="vm2")
    call(host.rig.agent.endpoint.report, epoch=5)
    with pytest.raises(StaleEpoch):
        host.mitigate()


def test_a_file_is_no_node(rig) -> None:
    rig.attach("op1")
    with pytest.raises(BadRequest, match="live-migrate"):
        call(verbs_of(rig.agent).mitigate, epoch=EPOCH, operation_id="m1", consumer_uuid="vm1")


def test_old_ones_are_forgotten(host) -> None:
    host.mitigate()
    host.rig.later.run()
    host.rig.now += 3601
    host.rig.beat()
    assert host.now() is None


def test_pages_that_the_kernel_moved_are_moved_back_by_the_heartbeat(host) -> None:
    host.kernel.pages = {0: 100, POOL: PAGES - 100}
    host.kernel.evacuations += 1
    host.rig.beat()
    assert host.kernel.pages == {POOL: PAGES}


def test_pages_that_a_mitigation_moved_stay_local(host) -> None:
    host.mitigate()
    host.at["chunk"] = lambda: call(host.led.abort_mitigation, epoch=EPOCH, consumer_uuid="vm1")
    host.kernel.evacuations += 1
    host.rig.beat()
    local = {0: 256, POOL: PAGES - 256}
    assert (host.now().state, host.kernel.pages) == ("aborted", local)
    host.kernel.evacuations += 1
    host.rig.beat()
    assert host.kernel.pages == local
    host.restart()
    host.rig.beat()
    assert host.kernel.pages == local
