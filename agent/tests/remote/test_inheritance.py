"""What an agent borrows for a guest that comes to its host: what the guest has, by reference, or else anew."""

from pathlib import Path
from typing import Any

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack_agent.remote.moves import former_mirror
from pondstack_agent.remote.records import Consumer

from .conftest import BORROWER, CONSUMER, Rack, RemoteHost

MEMORY, LOCAL, REMOTE, OTHER = 8, 4, 4, "host8"
SIZES = {"memory_mib": MEMORY, "local_mib": LOCAL}


@pytest.fixture
def source(rack: Rack) -> RemoteHost:
    """A host whose guest may leave; two hosts lend, each as much as that needs."""
    for lender in ("host1", "host2"):
        rack.lend(lender, REMOTE)
    made = rack.borrower
    made.conf.set_override("handover_address", "192.0.2.1", group="data_plane")
    made.restart()
    made.alloc(REMOTE)
    made.data_plane.boot(CONSUMER, MEMORY)
    made.calls.extend(consumer_uuid=CONSUMER, **SIZES)
    assert rack[OTHER]
    rack.turn()  # all are heard of
    return made


def consumer(host: RemoteHost) -> Consumer:
    found = host.remote._consumers.get(CONSUMER)
    assert found
    return found


def held(rack: Rack, host: str) -> set[tuple[str, int]]:
    return {(item.lender, item.index) for item in rack.controller.ledger.buffers.find() if item.host == host}


def test_what_is_handed_over_is_read_only_until_the_guest_is_here(rack: Rack, source: RemoteHost) -> None:
    comes = rack[OTHER]
    before = held(rack, BORROWER)
    comes.alloc(REMOTE, operation="alloc2", source=BORROWER)
    assert (held(rack, BORROWER), held(rack, OTHER)) == (before, set())
    origin = source.calls.hand_over(consumer_uuid=CONSUMER, public=comes.calls.expect_guest(consumer_uuid=CONSUMER))
    assert origin["references"] is True
    comes.calls.receive_guest(consumer_uuid=CONSUMER, disk_mib=0, **SIZES, origin=origin)
    comes.data_plane.boot(CONSUMER, MEMORY)
    comes.remote.moves._attach(CONSUMER, 4711)
    told = comes.data_plane.told_keys
    assert {key["buffer"] for key in told} <= {str(index) for _, index in before}
    assert all(key["handed"] for key in told)
    [allocation] = consumer(comes).allocations
    assert consumer(comes).is_handed(allocation)
    comes.data_plane._change(CONSUMER, handover=None)
    comes.beat()
    assert not consumer(comes).is_handed(allocation), "it is the guest's own"


def test_the_mirror_of_a_shared_folder_is_told_of(rack: Rack, source: RemoteHost, tmp_path: Path) -> None:
    """By its name: only where the destination has that file, too; a file of its own, or one elsewhere, is none."""
    comes = rack[OTHER]
    comes.conf.set_override("mirror_folder", str(tmp_path / "mirrors"), group="data_plane")
    comes.restart()
    comes.alloc(REMOTE, operation="alloc2", source=BORROWER)
    origin = source.calls.hand_over(consumer_uuid=CONSUMER, public=comes.calls.expect_guest(consumer_uuid=CONSUMER))
    own, former = Path(consumer(comes).mirror), Path(consumer(source).mirror)
    assert own.name != origin["mirror"] == former.name, "hosts may share the folder"
    assert former_mirror(tmp_path / "own", former.name) == "", "it is not shared"
    for name in ("own", former.name):
        (tmp_path / name).touch()
    assert former_mirror(tmp_path / "own", former.name) == str(tmp_path / former.name)
    for name in ("own", "", "..", ".", f"../{tmp_path.name}/{former.name}", f"{former.name}\0", 5, None):
        assert former_mirror(tmp_path / "own", name) == ""
    comes.calls.receive_guest(consumer_uuid=CONSUMER, disk_mib=0, **SIZES, origin=origin)
    shared = own.with_name(former.name)
    shared.parent.mkdir()
    shared.touch()
    comes.calls.receive_guest(
        consumer_uuid=CONSUMER, disk_mib=0, **SIZES, origin={**again(source, comes), "mirror": shared.name}
    )
    comes.data_plane.boot(CONSUMER, MEMORY)
    comes.remote.moves._attach(CONSUMER, 4711)
    told = comes.data_plane.origins[CONSUMER]
    assert told is not None
    assert told.members()["mirror"] == str(shared)


def again(source: RemoteHost, comes: RemoteHost) -> dict[str, Any]:
    return source.calls.hand_over(consumer_uuid=CONSUMER, public=comes.calls.expect_guest(consumer_uuid=CONSUMER))


def test_a_data_plane_of_a_former_release_has_nobody_see_its_mirror(rack: Rack, source: RemoteHost) -> None:
    comes = rack[OTHER]
    comes.alloc(REMOTE, operation="alloc2", source=BORROWER)
    source.data_plane.publishes = False
    assert "mirror" not in again(source, comes)


@pytest.mark.usefixtures("source")
def test_a_lender_of_a_former_release_makes_no_second_keys(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is borrowed anew, and the move goes on by value."""

    def refuse(*_arguments: object, **_named: object) -> None:
        raise HostUnusable("of a former release")

    monkeypatch.setattr(rack.controller.lenders._agents, "share", refuse, raising=False)
    comes, before = rack[OTHER], held(rack, BORROWER)
    comes.alloc(REMOTE, operation="alloc2", source=BORROWER)
    rack.turn(2)
    assert held(rack, BORROWER) == before
    assert len(held(rack, OTHER)) == REMOTE
    assert held(rack, OTHER).isdisjoint(before)
    assert not any(consumer(comes).is_handed(uuid) for uuid in consumer(comes).allocations)


def test_a_move_that_fails_gives_the_source_its_buffers_alone(rack: Rack, source: RemoteHost) -> None:
    comes, before = rack[OTHER], held(rack, BORROWER)
    comes.alloc(REMOTE, operation="alloc2", source=BORROWER)
    assert comes.release()
    rack.turn(3)
    assert held(rack, BORROWER) == before
    assert not any(item.heir or item.shared for item in rack.controller.ledger.buffers.find())
    assert consumer(source).state == "active"
