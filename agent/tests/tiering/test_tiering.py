"""Settings are written once, read back, and put back whatever ends the agent."""

import logging
from pathlib import Path

import pytest

from pondstack_agent.records import Records

from .conftest import AS_BOOTED, BALANCING, BOOT, DEMOTION, LIMIT, NODES, WATERMARK, WEIGHTS

TPP = {"demotion": "true", "promotion": "2", "promote_limit": "1024", "watermark": "200"}
SET = {DEMOTION: "true", BALANCING: "2", LIMIT: "1024", WATERMARK: "200"}


class Killed(BaseException):
    """Ends the agent where it is raised, as kill -9 does."""


def kill(_path: str, _text: str) -> None:
    raise Killed


def test_nothing_configured_is_nothing_touched(machine, start, tmp_path) -> None:
    tiering = start()
    tiering.maintain()
    assert tiering.report() == {}
    tiering.stop()
    assert machine.writes == []
    assert Records(tmp_path / "state").all() == {}


def test_settings_are_set_read_back_and_restored(machine, start, tmp_path) -> None:
    before = machine.all()
    tiering = start(**TPP)
    assert {path: machine.get(path) for path in SET} == SET
    assert tiering.report() == {
        "settings": {
            "demotion": "true",
            "promotion": "2",
            "promote_limit_mib_per_second": "1024",
            "watermark_scale_factor": "200",
        },
        "tiers": {"4": [0]},
        "trouble": [],
    }
    tiering.stop()
    assert machine.all() == before
    assert Records(tmp_path / "state").all() == {}


def test_what_is_already_so_is_not_written(machine, start) -> None:
    machine.put(DEMOTION, "true")
    tiering = start(demotion="true")
    tiering.stop()
    assert machine.writes == []
    assert machine.get(DEMOTION) == "true"


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("still_wanted", [True, False])
def test_an_agent_that_was_killed_restores_the_next_time(machine, start, moment, number, still_wanted) -> None:
    """Killed before or after each of its four writes; started again with the policy, or without it."""
    before, count = machine.all(), 0

    def at(_path: str, _text: str) -> None:
        nonlocal count
        count += 1
        if count == number + 1:
            raise Killed

    setattr(machine, moment, at)
    with pytest.raises(Killed):
        start(**TPP)
    setattr(machine, moment, lambda _path, _text: None)
    tiering = start(**(TPP if still_wanted else {}))
    if still_wanted:
        assert {path: machine.get(path) for path in SET} == SET
        tiering.stop()
    assert machine.all() == before


def test_an_agent_that_was_killed_while_it_restored_goes_on(machine, start) -> None:
    before = machine.all()
    tiering = start(**TPP)
    machine.after_write = kill
    with pytest.raises(Killed):
        tiering.stop()
    machine.after_write = lambda _path, _text: None
    start()
    assert machine.all() == before


def test_a_policy_that_changed_over_a_kill_restores_what_was_there_first(machine, start) -> None:
    start(watermark="200")
    tiering = start(watermark="300")
    assert machine.get(WATERMARK) == "300"
    tiering.stop()
    assert machine.get(WATERMARK) == AS_BOOTED[WATERMARK]


def test_a_kill_between_the_record_of_a_changed_policy_and_its_write(machine, start) -> None:
    start(watermark="200")
    machine.before_write = kill
    with pytest.raises(Killed):
        start(watermark="300")
    machine.before_write = lambda _path, _text: None
    start()
    assert machine.get(WATERMARK) == AS_BOOTED[WATERMARK]


def test_what_somebody_else_set_meanwhile_stays_and_is_told(machine, start, caplog) -> None:
    tiering = start(**TPP)
    machine.put(WATERMARK, "77")
    tiering.maintain()
    report = tiering.report()
    assert report["settings"]["watermark_scale_factor"] == "77"
    [trouble] = report["trouble"]
    assert "is 77 and was set to 200: somebody else changed it" in trouble
    with caplog.at_level(logging.WARNING):
        tiering.stop()
    assert machine.get(WATERMARK) == "77"
    assert "stays 77, which somebody else set; it was 10 before" in caplog.text


def test_a_reboot_restores_by_itself(machine, start, tmp_path) -> None:
    """What the new boot came up with is not overwritten with what the former one had."""
    start(**TPP)
    machine.reboot()
    machine.put(WATERMARK, "200")  # from sysctl.d, meanwhile
    machine.writes.clear()
    tiering = start(watermark="200")
    tiering.stop()
    assert machine.get(WATERMARK) == "200"
    assert machine.writes == []
    assert Records(tmp_path / "state").all() == {}


def test_a_setting_that_the_kernel_lacks_is_told_and_stops_nothing_else(machine, start) -> None:
    (machine.root / DEMOTION).unlink()
    tiering = start(**TPP)
    report = tiering.report()
    assert "demotion" not in report["settings"]
    assert report["settings"]["promotion"] == "2"
    assert "this kernel has no /sys/kernel/mm/numa/demotion_enabled" in report["trouble"][0]
    tiering.stop()
    assert machine.get(BALANCING) == AS_BOOTED[BALANCING]


def test_a_refusal_is_the_kernels_answer(machine, start, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        tiering = start(watermark="5000")
        tiering.maintain()
    assert tiering.report()["settings"] == {"watermark_scale_factor": "10"}
    assert "the kernel refuses '5000' for /proc/sys/vm/watermark_scale_factor" in tiering.report()["trouble"][0]
    assert caplog.text.count("refuses '5000'") == 1
    tiering.stop()
    assert machine.writes == []


def test_the_kernels_answer_is_the_truth_not_what_was_written(machine, start) -> None:
    def round_down(path: str, _text: str) -> None:
        machine.put(path, "64")

    machine.after_write = round_down
    tiering = start(watermark="65")
    machine.after_write = lambda _path, _text: None
    report = tiering.report()
    assert report["settings"] == {"watermark_scale_factor": "64"}
    assert report["trouble"] == ["watermark_scale_factor was set to 65 and the kernel has 64"]
    tiering.stop()
    assert machine.get(WATERMARK) == "10"


def test_nodes_that_cannot_be_read_are_told_and_stop_nothing_else(machine, start) -> None:
    machine.put(f"{NODES}/has_memory", "many")
    tiering = start(demotion="true", weights=(5, 1))
    report = tiering.report()
    assert report["settings"] == {"demotion": "true"}
    assert "nodes of this host cannot be read" in report["trouble"][0]
    machine.put(f"{NODES}/has_memory", "0")
    tiering.maintain()
    assert tiering.report()["trouble"] == []
    assert tiering.report()["settings"] == {"demotion": "true", "interleave_node0": "5"}


def test_what_cannot_be_restored_stays_on_record(machine, start, caplog, tmp_path: Path) -> None:
    tiering = start(demotion="true")
    writer, machine.write = machine.write, lambda _path, _text: "Operation not permitted"  # type: ignore[method-assign]
    broken = start(demotion="true")
    broken.stop()
    assert "stays on record until it can be put back" in caplog.text
    assert list(Records(tmp_path / "state").all()) == ["demotion"]
    machine.write = writer  # type: ignore[method-assign]
    tiering.stop()
    assert machine.get(DEMOTION) == "false"


def test_weights_of_a_node_that_comes_online_later(machine, start) -> None:
    tiering = start(weights=(5, 1))
    assert tiering.report()["settings"] == {"interleave_node0": "5"}
    machine.put(f"{WEIGHTS}/node1", "9")
    machine.online(1, tier=22)
    tiering.maintain()
    assert tiering.report()["settings"] == {"interleave_node0": "5", "interleave_node1": "1"}
    tiering.stop()
    assert machine.get(f"{WEIGHTS}/node0") == "1"
    assert machine.get(f"{WEIGHTS}/node1") == "9"


@pytest.mark.parametrize("name", ["auto", "__auto_type"])
def test_automatic_weights_are_switched_off_first_and_on_again_last(machine, start, name) -> None:
    machine.put(f"{WEIGHTS}/{name}", "true")
    tiering = start(weights=(5, 1))
    assert machine.writes == [(f"{WEIGHTS}/{name}", "false"), (f"{WEIGHTS}/node0", "5")]
    assert tiering.report()["settings"]["interleave_auto"] == "false"
    tiering.stop()
    assert machine.writes[2:] == [(f"{WEIGHTS}/node0", "1"), (f"{WEIGHTS}/{name}", "true")]


def test_after_its_end_nothing_is_set_any_more(machine, start) -> None:
    """The heartbeat's thread is not waited for."""
    tiering = start(weights=(5, 1))
    tiering.stop()
    machine.online(1, tier=22)
    machine.writes.clear()
    tiering.maintain()
    tiering.stop()
    assert machine.writes == []


def test_the_record_is_there_before_the_first_write(machine, start, tmp_path) -> None:
    machine.before_write = kill
    with pytest.raises(Killed):
        start(demotion="true")
    wanted = {"path": DEMOTION, "former": "false", "written": ["true"], "boot": machine.get(BOOT)}
    assert Records(tmp_path / "state").all() == {"demotion": wanted}
