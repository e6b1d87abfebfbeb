"""The verbs by which the controller leads a mitigation: what is held keeps its slices until they are ordered back."""

import pytest

from pondstack.domain.errors import BadRequest, Conflict, InUse, NotFound, Unavailable
from pondstack_agent.mitigation.domains import Domains
from tests.fixtures.rpc_call import call

from .mitigated_host import EPOCH, PAGES, POOL, Killed, verbs_of


def test_a_file_is_no_node_whether_libvirt_answers_or_not(rig, monkeypatch) -> None:
    """Its guest is moved to another host, which needs none: nobody is to wait for it."""
    monkeypatch.setattr(Domains, "check", unreachable)
    rig.attach("op1")
    with pytest.raises(BadRequest, match="live-migrate"):
        call(verbs_of(rig.agent).mitigate, epoch=EPOCH, operation_id="m1", consumer_uuid="vm1", hold=True)


def unreachable(_self: object) -> None:
    """Be a libvirt that does not answer."""
    raise Unavailable("no libvirt")


def test_a_held_one_keeps_its_slices_until_they_are_ordered_back(host) -> None:
    begun = host.hold()
    assert (begun.state, begun.held) == ("moving", True)
    host.rig.later.run()
    assert (host.now().state, host.now().pages_moved) == ("mitigated", PAGES)
    host.rig.now += 3601
    host.rig.beat()
    host.restart()
    host.rig.beat()
    assert len(host.rig.attached()) == 1
    assert host.hold() == host.now(), "it is remembered as long as it holds"
    with pytest.raises(Conflict, match="too late"):
        host.abort()
    assert host.release()
    assert host.rig.attached() == set()
    assert host.rig.controller.held == {}
    assert host.release(), "nothing is held any more"


@pytest.mark.parametrize("step", ["record", "chunk", "cgroup", "mitigated", "release"])
def test_a_held_one_killed_at_each_step(host, step: str) -> None:
    """Its slices go by order only, whenever the agent is killed; an order once given is carried out."""
    host.kill_at = step
    if step == "record":
        with pytest.raises(Killed):
            host.hold()
    else:
        host.hold()
        if step == "release":
            host.rig.later.run()
            with pytest.raises(Killed):
                host.release()
        else:
            with pytest.raises(Killed):
                host.rig.later.run()
    host.restart()
    if step == "release":
        assert host.rig.attached() == set()
        assert host.rig.controller.held == {}
        return
    assert len(host.rig.attached()) == 1
    if step != "mitigated":
        assert step == "record" or host.now().state == "failed"
        host.hold("m2")
        host.rig.later.run()
    assert host.now().state == "mitigated"
    assert len(host.rig.attached()) == 1
    assert host.release()
    assert host.rig.attached() == set()


def test_slices_of_a_guest_that_uses_them_again_stay(host) -> None:
    """It was started again by a domain from before: the kernel says so, whatever is on record."""
    host.hold()
    host.rig.later.run()
    host.kernel.policy = POOL
    with pytest.raises(InUse):
        host.release()
    host.rig.beat()
    assert len(host.rig.attached()) == 1
    host.hold("m2")
    host.rig.later.run()
    assert host.release()
    assert host.rig.attached() == set()


def test_only_what_is_mitigated_is_given_back(host) -> None:
    with pytest.raises(Conflict, match="mitigate it first"):
        host.release()
    host.hold()
    host.abort()
    host.rig.later.run()
    assert host.now().state == "aborted"
    with pytest.raises(Conflict, match="mitigate it first"):
        host.release()
    assert len(host.rig.attached()) == 1


def test_a_held_one_of_a_guest_that_does_not_run(host) -> None:
    host.kernel.running = False
    with pytest.raises(NotFound):
        host.mitigate()
    done = host.hold()
    assert (done.state, done.pages_total) == ("mitigated", 0)
    assert len(host.rig.attached()) == 1
    assert host.release()
    assert host.rig.attached() == set()


def test_one_that_was_aborted_on_its_way_never_begins(host) -> None:
    assert host.abort("m1").state == "aborted"
    assert host.hold("m1").state == "aborted"
    host.rig.later.run()
    assert (host.kernel.moves, host.kernel.policy) == (0, POOL)
    host.hold("m2")
    host.abort("m3")  # the one that is under way ends
    host.rig.later.run()
    assert (host.now().operation_id, host.now().state) == ("m2", "aborted")


def test_what_cannot_be_rewritten_is_not_moved(host, monkeypatch) -> None:
    monkeypatch.setattr(Domains, "check", unreachable)
    with pytest.raises(Unavailable):
        host.hold()
    host.rig.later.run()
    assert (host.now(), host.kernel.moves) == (None, 0)
