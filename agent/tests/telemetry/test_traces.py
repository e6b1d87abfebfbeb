"""Traces of a file: by instance before project, read anew when they change; a bad file changes nothing."""

import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest
from pondstack_agent.telemetry.synthetic import PlayedGuest, untouched_mib
from pondstack_agent.telemetry.traces import HostTraceFile, TraceFile, parse, percent_at

GUEST = PlayedGuest("0635cccd-1e78-5473-b66a-bacffc433357", "blue", 4096, 1024, 10.0)


def write(path: Path, text: str) -> None:
    """Write, with another time than before, however coarse the file system's clock is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 1, before + 1))


def test_between_two_points_is_a_straight_line() -> None:
    points = [(10.0, 100.0), (20.0, 50.0), (30.0, 40.0)]
    found = [percent_at(points, age) for age in (0.0, 10.0, 15.0, 20.0, 25.0, 30.0, 99.0)]
    assert found == [100.0, 100.0, 75.0, 50.0, 45.0, 40.0, 40.0]


def test_an_instance_goes_before_its_project_and_the_file_is_read_anew(tmp_path: Path) -> None:
    traces = TraceFile(tmp_path / "traces.json")
    assert traces.untouched_mib(GUEST) == untouched_mib(GUEST)
    write(tmp_path / "traces.json", json.dumps({"blue": [[0, 75]]}))
    assert traces.untouched_mib(GUEST) == 3072
    assert traces.untouched_mib(replace(GUEST, project_id="red")) == untouched_mib(replace(GUEST, project_id="red"))
    write(tmp_path / "traces.json", json.dumps({"blue": [[0, 75]], GUEST.consumer_uuid: [[0, 100], [20, 50]]}))
    assert traces.untouched_mib(GUEST) == 3072
    assert traces.untouched_mib(replace(GUEST, age_seconds=20.0)) == 2048
    (tmp_path / "traces.json").unlink()
    assert traces.untouched_mib(GUEST) == untouched_mib(GUEST)


def test_a_bad_file_is_told_once_and_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    traces = TraceFile(tmp_path / "traces.json")
    write(tmp_path / "traces.json", '{"blue": [[0, 50]]}')
    assert traces.untouched_mib(GUEST) == 2048
    write(tmp_path / "traces.json", "{")
    with caplog.at_level(logging.ERROR):
        assert [traces.untouched_mib(GUEST) for _ in range(2)] == [2048, 2048]
    assert caplog.text.count("what was read before is played on") == 1


@pytest.mark.parametrize(
    "bad",
    [
        "[]",
        '{"a": []}',
        '{"a": 5}',
        '{"a": [[0]]}',
        '{"a": [[0, 101]]}',
        '{"a": [[5, 9], [5, 8]]}',
        '{"a": [["x", 1]]}',
    ],
)
def test_what_is_no_trace_is_named(bad: str) -> None:
    with pytest.raises(BadRequest, match="trace"):
        parse(bad)


def test_the_load_of_a_host_is_played_from_when_the_file_was_written(tmp_path: Path) -> None:
    path, now = tmp_path / "loads.json", [1000.0]
    loads = HostTraceFile(path, "host1", lambda: now[0])
    assert loads.load_percent() is None, "without a file it is as busy as it is"
    path.write_text('{"host1": [[0, 60], [10, 20]], "host2": [[0, 1]]}')
    os.utime(path, (1000.0, 1000.0))
    assert loads.load_percent() == 60.0
    now[0] = 1005.0
    assert loads.load_percent() == 40.0
    now[0] = 2000.0
    assert loads.load_percent() == 20.0
    assert HostTraceFile(path, "host3", lambda: now[0]).load_percent() is None
