"""A host wants memory back: from the controller at first, on its own when that takes too long."""

from dataclasses import replace

import pytest

from pondstack.domain.errors import BadRequest, Conflict, Unavailable
from pondstack_agent.lending.client import LenderClient


def silent(**_: object) -> None:
    raise Unavailable("no answer")


def indexes(host) -> list[int]:
    return [item["index"] for item in host.lending.get_lending()["buffers"]]


def newest(host) -> tuple[str, int]:
    operation = host.lending.get_lending()["operations"][-1]
    return operation["state"], operation["done_mib"]


def reclaim(host, mib: int = 2, seconds: float | None = None) -> None:
    host.calls.reclaim(epoch=1, operation_id="reclaim1", mib=mib, seconds=seconds)
    host.later.run()


def test_what_the_controller_frees_goes_back(rack) -> None:
    host = rack["host1"]
    host.lend(4)
    rack.borrow_buffers([0, 1])
    rack.controller.freed = [3]
    reclaim(host)
    assert indexes(host) == [0, 1, 2]
    assert newest(host) == ("pending", 1)
    rack.controller.freed = [3, 2, 1]  # more than was asked for is not taken
    host.beat()
    assert newest(host) == ("done", 2)
    assert indexes(host) == [0, 2]
    assert [item["index"] for item in rack.controller.delegated[-1]["buffers"]] == [0, 2]
    first, last = (offer["sequence"] for offer in rack.controller.delegated)
    assert last > first


def test_at_the_deadline_the_host_helps_itself(rack, caplog) -> None:
    host, borrower = rack["host1"], rack["host2"]
    host.lend(3)
    incarnation = rack.borrow_buffers([0, 1, 2])
    reclaim(host, seconds=30.0)
    host.now += 29
    host.beat()
    assert indexes(host) == [0, 1, 2]
    borrower.link("host1", incarnation).write(2, 0, b"x")
    host.now += 1
    host.beat()
    assert indexes(host) == [0]
    assert "revokes 2 buffers on its own" in caplog.text
    # Its keys were dead before the memory was the host's: the borrower goes on from its mirror.
    with pytest.raises(Conflict):
        borrower.link("host1", incarnation).write(2, 0, b"x")
    borrower.link("host1", incarnation).write(0, 0, b"x")


def test_a_silent_controller_does_not_keep_the_memory(rack) -> None:
    host = rack["host1"]
    host.lend(2)
    rack.borrow_buffers([0, 1])
    rack.controller.before["reclaim"] = [silent, silent]
    reclaim(host, mib=1, seconds=0.0)
    assert indexes(host) == [0]
    assert newest(host) == ("done", 1)


def test_it_goes_on_after_a_restart(rack) -> None:
    host = rack["host1"]
    host.lend(2)
    rack.borrow_buffers([0, 1])
    reclaim(host, mib=1)
    host.restart()
    rack.controller.freed = [0]
    host.beat()
    assert indexes(host) == [1]
    assert newest(host) == ("done", 1)


def test_what_the_controller_withdraws_meanwhile_counts(rack) -> None:
    host = rack["host1"]
    host.lend(3)
    rack.borrow_buffers([0, 1, 2])
    reclaim(host, mib=1)
    host.calls.revoke(epoch=1, indexes=[1])
    host.calls.withdraw(epoch=1, indexes=[1])
    host.now += 3600
    host.beat()
    assert indexes(host) == [0, 2]
    assert newest(host) == ("done", 1)


def test_a_lender_that_died_has_given_all_back(rack) -> None:
    host = rack["host1"]
    host.lend(1)
    rack.borrow_buffers([0])
    reclaim(host, mib=1)
    host.kill()
    host.beat()
    assert newest(host)[0] == "done"


def test_with_its_last_buffer_the_process_ends(rack) -> None:
    host = rack["host1"]
    host.lend(1)
    rack.controller.freed = [0]
    reclaim(host, mib=5)
    lent = host.lending.get_lending()
    assert (lent["incarnation"], lent["operations"][-1]["done_mib"]) == ("", 1)
    assert rack.controller.delegated[-1]["incarnation"] == ""
    host.beat()
    assert len(rack.controller.delegated) == 2  # its end is no loss


def test_memory_pressure_takes_buffers_back(rack, caplog) -> None:
    host = rack["host1"]
    host.lend(3)
    rack.borrow_buffers([0])
    host.available_mib = 1024 - 2  # below pressure_mib, two less than reserve_mib
    rack.controller.freed = [1, 2]
    host.beat()
    assert indexes(host) == [0]
    assert "takes 2 MiB back" in caplog.text
    host.available_mib = 4096
    host.beat()
    assert indexes(host) == [0]


def test_nothing_is_no_reclaim(rack) -> None:
    with pytest.raises(BadRequest):
        reclaim(rack["host1"], mib=0)


def test_memory_whose_key_the_device_holds_on_to_stays(rack, monkeypatch) -> None:
    host, tried = rack["host1"], set[int]()
    host.lend(3)
    rack.borrow_buffers([0, 1, 2])
    hold, revoke = LenderClient.hold, LenderClient.revoke

    def failing_hold(self, seconds=None):
        found = hold(self, seconds)
        told = (replace(item, failed="EIO") if item.index in tried & {2} else item for item in found.buffers)
        return replace(found, buffers=tuple(told))

    def failing_revoke(self, incarnation, indexes, generations=None):
        tried.update(indexes)
        return revoke(self, incarnation, [index for index in indexes if index != 2], generations)

    monkeypatch.setattr(LenderClient, "hold", failing_hold)
    monkeypatch.setattr(LenderClient, "revoke", failing_revoke)
    reclaim(host, mib=3, seconds=0.0)
    host.beat()
    assert indexes(host) == [2]
    assert newest(host) == ("done", 2)
    [operation] = [item for item in host.lending.get_lending()["operations"] if item["verb"] == "reclaim"]
    assert "1 MiB stay: the device did not end their keys ([2])" in operation["reason"]
    assert host.lending.get_lending()["failed"] == {"2": "EIO"}
