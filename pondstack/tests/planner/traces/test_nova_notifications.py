"""Logs of Nova's notifications, by hand; nova_plugins/tests/test_notification_logs.py has them from Nova itself."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import nova_notifications
from pondstack.planner.traces.imported import Imported, Options

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


def told(at: float, event: str, uuid: str = "a", launched: float | None = 0, **more: Any) -> str:
    """Return a line: an unversioned notification; `at` and `launched` in seconds."""
    since = "" if launched is None else f"{BEGUN + timedelta(seconds=launched):%Y-%m-%dT%H:%M:%SZ}"
    payload = {"instance_id": uuid, "tenant_id": "blue", "vcpus": 1, "memory_mb": 1024, "state": "active"}
    payload |= {"launched_at": since, **more}
    time = f"{BEGUN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S.%f}"
    return json.dumps({"event_type": f"compute.instance.{event}", "timestamp": time, "payload": payload})


def read(folder: Path, *lines: str) -> Imported:
    """Read a log of these lines."""
    path = folder / "nova.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return nova_notifications.read(path, Options(""))


def spans(found: Imported) -> list[tuple[int, int | None]]:
    """Return starts and ends."""
    return list(found.trace.servers.select("start_seconds", "end_seconds").iter_rows())


def test_what_was_launched_before_the_log_is_there_from_its_beginning(tmp_path: Path) -> None:
    found = read(
        tmp_path, told(100, "create.end", "new", 100), told(150, "delete.end", "old", -5000), told(200, "exists")
    )
    assert spans(found) == [(0, None), (0, 50), (0, None)]
    # One whose creation the log lost began within it.
    lost = read(tmp_path, told(100, "create.end", "new", 100), told(180, "exists", "b", 130))
    assert spans(lost) == [(0, None), (30, None)]


def test_an_offloaded_instance_has_no_memory_until_it_is_back(tmp_path: Path) -> None:
    lines = [told(0, "create.end"), told(100, "shelve_offload.end"), told(150, "exists", state="shelved_offloaded")]
    assert spans(read(tmp_path, *lines, told(200, "unshelve.end"), told(300, "exists"))) == [(0, 100), (200, None)]


def test_words_ahead_and_envelopes_are_no_fault(tmp_path: Path) -> None:
    inner = told(0, "create.end")
    outer = json.dumps({"oslo.version": "2.0", "oslo.message": told(60, "delete.end")})
    found = read(tmp_path, f"2026-11-01 00:00:00.1 7 INFO oslo.messaging.notification.x [-] {inner}", outer)
    assert spans(found) == [(0, 60)]


def test_both_forms_of_one_notification_count_once(tmp_path: Path) -> None:
    found = read(tmp_path, told(1, "create.end"), told(1, "create.end"), told(9, "delete.end"), told(9, "delete.end"))
    assert spans(found) == [(0, 8)]
    assert found.trace.dropped == (Dropped("it ends what had not started, or had ended", 1, 4),)


def test_what_is_no_notification_is_dropped_with_its_line(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "a line of another log",
        '{"event_type": "compute.instance.create.end", "payload": {',
        told(1, "create.end", launched=None),
        told(1, "create.end", memory_mb="much"),
        json.dumps({"event_type": "compute.instance.create.end", "timestamp": "noon", "payload": {}}),
        '{"event": "x"}',
        '{"event_type": "scheduler.select_destinations.end"}',
        told(5, "create.end", "b", 5),
    )
    assert spans(found) == [(0, None)]
    assert {(item.reason, item.rows, item.first_row) for item in found.trace.dropped} == {
        ("it is no JSON object", 2, 1),
        ("it is there and was never launched", 2, 3),
        ("memory_mib is not from 1 to 1099511627776", 1, 4),
        ("its type of event is not known", 1, 6),
    }
    assert found.notes[0] == "1 events tell of 1 runs; 1 other events were not needed"


def test_a_folder_of_logs_counts_rows_on(tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(f"{told(0, 'create.end')}\n".encode()))
    (tmp_path / "b.log").write_text(f"no\n{told(60, 'delete.end')}\n")
    found = nova_notifications.read(tmp_path, Options(""))
    assert (spans(found), found.trace.dropped) == ([(0, 60)], (Dropped("it is no JSON object", 1, 2),))


def test_a_log_without_any_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"none of its 1 rows is a server. 1 rows: it is no JSON object \(first: 1\)"):
        read(tmp_path, "hello")
