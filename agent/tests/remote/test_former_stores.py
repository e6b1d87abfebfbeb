"""What an agent of a former release left of a page store: it goes when its process has ended, and not before."""

import json
import os

import pytest

from pondstack.domain.errors import Conflict
from pondstack_agent.helper.lock import hold_lock
from pondstack_agent.remote.former_stores import LOCK
from pondstack_agent.remote.records import disk_uuid

from .conftest import CONSUMER

STORE = disk_uuid(CONSUMER)


@pytest.fixture
def left(rack):
    """Of two lenders 4 MiB each, 4 MiB are a page store's: the record of a swap disk, but nobody's disk."""
    for name in ("host1", "host2"):
        rack.lend(name, 4)
    host = rack.borrower
    for each in rack.hosts.values():
        each.beat()
    host.attach_swap(4)
    host.data_plane.blocks.unexport(STORE)
    mirror, consumers = rack.root / f"{STORE}.mirror", host.remote._consumers
    mirror.write_bytes(b"pages")
    folder = rack.root / host.conf.host / "pages" / STORE
    folder.mkdir(parents=True)
    (folder / LOCK).write_text(json.dumps({"pid": 4711}))
    consumers.put(consumers.get(STORE), instance_uuid="", mirror=str(mirror))
    assert rack.controller.states() == {"free": 4, "online": 4}
    return rack, folder, mirror


def test_what_has_ended_is_given_back_and_removed(left, caplog) -> None:
    rack, folder, mirror = left
    rack.borrower.restart()
    rack.turn(2)
    assert (rack.free(), rack.borrower.remote.views()) == (True, [])
    assert (folder.exists(), mirror.exists()) == (False, False)
    assert f"Consumer {STORE} had a page store of a former release, which has ended" in caplog.text


def test_one_that_runs_keeps_what_it_has(left, caplog) -> None:
    """Somebody may swap to it. A lender gets nothing back from it as long as its keys are in use."""
    rack, folder, mirror = left
    host, lock = rack.borrower, hold_lock(folder / LOCK)
    host.restart()
    rack.reclaim("host1", 4)
    rack.turn(3)
    assert (rack.done("host1"), mirror.exists()) == (False, True)
    assert [(view["state"], view["borrowed_mib"]) for view in host.remote.views()] != []
    assert caplog.text.count("runs as process 4711: stop what swaps to it, then `kill` it") >= 1
    with pytest.raises(Conflict, match="being released"):
        host.calls.alloc_ext(operation_id="o", consumer_uuid=STORE, mib=4)
    os.close(lock)
    rack.turn_until(lambda: rack.done("host1") and not host.remote.views())
    rack.turn(2)
    assert (rack.free(), folder.exists(), mirror.exists()) == (True, False, False)
