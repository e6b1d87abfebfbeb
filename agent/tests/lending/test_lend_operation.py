"""Lending: how much, how often told, and what a restarted agent finds."""

import logging

import pytest

from pondstack.domain.errors import BadRequest, Conflict, OperationMismatch, StaleEpoch, Unavailable
from pondstack.domain.units import MIB
from tests.fixtures.rpc_call import call


def silent(*_: object, **__: object) -> None:
    raise Unavailable("no answer")


def test_never_more_than_the_host_can_spare(rack) -> None:
    host = rack["host1"]
    host.available_mib = 1024 + 2
    original = host.lending._room._meminfo
    # What is registered is not available any more.
    host.lending._room._meminfo = lambda: (original()[0] - len(_buffers(host)) * MIB, original()[1])
    lent = host.lend(5)
    assert len(lent["buffers"]) == 2
    [operation] = lent["operations"]
    assert (operation["state"], operation["mib"], operation["done_mib"]) == ("done", 5, 2)
    assert "2 of 5 MiB are lent; see [lending] reserve_mib" in operation["reason"]
    assert len(rack.controller.delegated[0]["buffers"]) == 2


def test_never_more_than_it_may(rack) -> None:
    host = rack["host1"]
    host.lending._room._most_mib = 2
    lent = host.lend(5)
    assert (len(lent["buffers"]), lent["lendable_mib"]) == (2, 0)
    [operation] = lent["operations"]
    assert "2 of 5 MiB are lent; see [lending] most_mib" in operation["reason"]


def _buffers(host) -> tuple:
    return host.lending._client.hold().buffers


def test_a_host_without_room_starts_no_process(rack) -> None:
    host = rack["host1"]
    host.available_mib = 1024
    lent = host.lend(5)
    assert (lent["incarnation"], lent["buffers"], lent["lendable_mib"]) == ("", [], 0)
    assert "keeps all for itself" in lent["operations"][0]["reason"]
    assert rack.controller.delegated[0]["incarnation"] == ""
    assert not (host.folder / "lender.lock").exists()


def test_what_guests_and_mitigations_need_is_kept(rack) -> None:
    host = rack["host1"]
    before = host.lending.get_lending()["lendable_mib"]
    host.growth_mib = 100
    assert host.lending.get_lending()["lendable_mib"] == before - 100


def test_out_of_memory_in_the_process_is_an_answer(rack, monkeypatch) -> None:
    """The transport's own guard refuses what the agent let through."""
    host = rack["host1"]
    host.lend(1)
    client = host.lending._client
    register = client.register

    def refuse(_incarnation: str) -> int:
        raise Unavailable("this host has no memory for it")

    monkeypatch.setattr(client, "register", refuse)
    lent = host.lend(3, operation="lend2")
    assert len(lent["buffers"]) == 1
    assert lent["operations"][-1]["reason"] == "this host has no memory for it"
    monkeypatch.setattr(client, "register", register)
    assert len(host.lend(3, operation="lend3")["buffers"]) == 3


def test_a_restarted_agent_finds_what_it_lent(rack) -> None:
    host = rack["host1"]
    lent = host.lend(2)
    incarnation = rack.borrow_buffers([0])
    answer = host.calls.export(epoch=1, indexes=[0], borrower="host2")
    host.restart()
    found = host.lending.get_lending()
    assert found["incarnation"] == lent["incarnation"] == incarnation
    assert [(item["borrower"], item["generation"]) for item in found["buffers"]] == [("host2", 1), ("", 0)]
    assert host.calls.export(epoch=1, indexes=[0], borrower="host2") == answer
    link = rack["host2"].link("host1", incarnation)
    link.write(0, 0, b"there")


def test_a_lend_goes_on_after_a_restart(rack) -> None:
    host = rack["host1"]
    host.calls.lend(epoch=1, operation_id="lend1", mib=2, kind="active")
    host.restart()  # before anything was done
    assert host.lending.get_lending()["operations"][0]["state"] == "pending"
    host.beat()
    assert len(host.lending.get_lending()["buffers"]) == 2
    # Stopped in the middle: its next life registers the rest.
    host.calls.lend(epoch=1, operation_id="lend2", mib=4, kind="active")
    host.lending.stop()
    host.later.run()
    assert host.lending.get_lending()["operations"][-1]["state"] == "pending"
    host.restart()
    host.beat()
    assert len(host.lending.get_lending()["buffers"]) == 4
    assert len(rack.controller.delegated) == 2


def test_the_controller_is_told_until_it_answers(rack) -> None:
    host = rack["host1"]
    rack.controller.before["delegate"] = [silent]
    assert host.lend(1)["operations"][0]["state"] == "telling"
    host.restart()
    host.beat()
    assert host.lending.get_lending()["operations"][0]["state"] == "done"
    assert len(rack.controller.delegated) == 1


def test_a_refusal_of_the_controller_is_the_reason(rack, caplog) -> None:
    def refuse(**_: object) -> None:
        raise BadRequest("buffers of this rack have 64 MiB")

    rack.controller.before["delegate"] = [refuse]
    [operation] = rack["host1"].lend(1)["operations"]
    assert operation["state"] == "done"
    assert "buffers of this rack have 64 MiB" in operation["reason"]
    assert "buffers of this rack" in caplog.text


def test_a_repetition_changes_nothing(rack) -> None:
    host = rack["host1"]
    first = host.lend(2)
    assert host.lend(2)["buffers"] == first["buffers"]
    assert len(rack.controller.delegated) == 1
    with pytest.raises(OperationMismatch):
        host.calls.lend(epoch=1, operation_id="lend1", mib=3, kind="active")


def test_one_operation_at_a_time(rack) -> None:
    host = rack["host1"]
    host.calls.lend(epoch=1, operation_id="lend1", mib=1, kind="active")
    with pytest.raises(Conflict, match="lend lend1 is under way"):
        host.calls.lend(epoch=1, operation_id="lend2", mib=1, kind="active")


def test_looks_do_not_pile_up_behind_a_long_lend(rack) -> None:
    host = rack["host1"]
    for _ in range(5):
        host.lending.maintain(3600.0)
        host.borrower.maintain(3600.0)
    assert len(host.later.waiting) == 2


def test_a_lender_becomes_a_zombie(rack) -> None:
    host = rack["host1"]
    active = host.lend(1)
    zombie = host.lend(1, "zombie", "lend2")
    assert (active["kind"], zombie["kind"]) == ("active", "zombie")
    assert zombie["incarnation"] == active["incarnation"]
    assert rack.controller.delegated[-1]["kind"] == "zombie"


@pytest.mark.parametrize(("mib", "kind"), [(-1, "active"), (1, "vampire")])
def test_nonsense_is_refused(rack, mib, kind) -> None:
    with pytest.raises(BadRequest):
        rack["host1"].calls.lend(epoch=1, operation_id="lend1", mib=mib, kind=kind)


def test_an_old_controller_is_refused(rack) -> None:
    host = rack["host1"]
    host.lend(1)
    call(host.agent.endpoint.report, epoch=5)
    calls = host.calls
    commands = [
        lambda: calls.lend(epoch=4, operation_id="x", mib=1, kind="active"),
        lambda: calls.reclaim(epoch=4, operation_id="x", mib=1),
        lambda: calls.export(epoch=4, indexes=[0], borrower="host2"),
        lambda: calls.revoke(epoch=4, indexes=[0]),
        lambda: calls.withdraw(epoch=4, indexes=[0]),
        lambda: calls.prepare(epoch=4, lender="host2", ticket={}, keys={}),
        lambda: calls.give_back(epoch=4, allocation_uuid="l", lender="host2", indexes=[0]),
    ]
    for command in commands:
        with pytest.raises(StaleEpoch):
            command()
    assert len(host.lending.get_lending()["buffers"]) == 1


def test_quiet_at_idle(rack, caplog) -> None:
    host = rack["host1"]
    host.lend(1)
    rack.borrow_buffers([0])
    host.beat()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            host.beat()
            rack["host2"].beat()
    assert [record for record in caplog.records if record.levelno >= logging.INFO and "Epoch" not in record.msg] == []


def test_the_report_has_both_sides(rack) -> None:
    rack["host1"].lend(3)
    incarnation = rack.borrow_buffers([0, 1])
    report = rack["host1"].agent.reporter.report()
    assert report.lending
    assert report.lending["buffers"] == [[0, 2, "host2", 1], [2, 1, "", 0]]
    assert (report.lending["incarnation"], report.lending["answers"]) == (incarnation, True)
    borrowed = rack["host2"].agent.reporter.report().borrowed
    assert borrowed
    [lender] = borrowed["lenders"]
    assert (lender["lender"], lender["incarnation"]) == ("host1", incarnation)
    assert lender["allocations"] == {"allocation1": [0, 1]}
