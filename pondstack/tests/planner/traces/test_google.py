"""Google's traces of 2011 and 2019, on small files in their form."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import google_2011, google_2019
from pondstack.planner.traces.imported import Options

HOST = Options("", host_vcpus=100, host_gib=100.0)
AFTER = (1 << 63) - 1


def task(at: float, kind: int, name: str = "7", cpus: str = "0.02", memory: str = "0.01") -> str:
    """Return a row of task_events; `at` in seconds."""
    time = AFTER if at == float("inf") else int(at * 1_000_000)
    return f"{time},,job,{name},9,{kind},user+of/many/letters=,2,9,{cpus},{memory},0.001,0\n"


def test_each_run_of_a_task_is_a_server_and_a_new_size_another(tmp_path: Path) -> None:
    (tmp_path / "part-00000-of-00500.csv.gz").write_bytes(
        gzip.compress((task(0, 0) + task(0, 1) + task(600, 2) + task(700, 1)).encode())
    )
    (tmp_path / "part-00001-of-00500.csv.gz").write_bytes(
        gzip.compress((task(800, 8, memory="0.02") + task(900, 4) + task(950, 1, "8") + task(1000, 7, "9")).encode())
    )
    found = google_2011.read(tmp_path, HOST)
    group = "user+of/many"
    assert found.trace.servers.rows() == [
        (0, 600, 2.0, 1024, None, None, group),
        (700, 800, 2.0, 1024, None, None, group),
        (800, 900, 2.0, 2048, None, None, group),
        (950, None, 2.0, 1024, None, None, group),
    ]
    assert (found.rows, found.trace.dropped, found.trace.origin) == (8, (), "google-2011")
    assert found.notes[0] == "6 events tell of 4 runs; 2 other events were not needed"


def test_what_is_no_event_of_2011_is_dropped_with_its_row_across_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(task(0, 1) + task(5, 9))
    (tmp_path / "b.csv").write_text(
        task(float("inf"), 4) + task(6, 4, "8") + task(7, 1, "9", cpus="") + "1,2,3\n" + task(8, 4)
    )
    found = google_2011.read(tmp_path, HOST)
    assert found.trace.servers["end_seconds"].to_list() == [8]
    assert found.trace.dropped == (
        Dropped("its type of event is not known", 1, 2),
        Dropped("its time is after the trace", 1, 3),
        Dropped("it ends what had not started, or had ended", 1, 4),
        Dropped("vcpus is not over 0 and up to 65536", 1, 5),
        Dropped("it has another number of fields", 1, 6),
    )


def test_sizes_of_the_host_are_needed_and_files_too(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="give --host-vcpus and --host-gib"):
        google_2011.read(tmp_path, Options(""))
    with pytest.raises(BadRequest, match="has no file that ends in"):
        google_2011.read(tmp_path, HOST)
    with pytest.raises(BadRequest, match="give --host-vcpus and --host-gib"):
        google_2019.read(tmp_path, Options(""))


def instance(at: float, kind: int | str, collection: str = "5", **more: Any) -> str:
    """Return a line of instance_events, as BigQuery writes it: numbers of 64 bits are text."""
    fields = {
        "time": str(int(at * 1_000_000)),
        "type": kind,
        "collection_id": collection,
        "instance_index": "0",
        "alloc_collection_id": "0",
        "resource_request": {"cpus": 0.02, "memory": 0.01},
    }
    return json.dumps({**fields, **more}) + "\n"


def test_instances_of_2019_by_number_or_name(tmp_path: Path) -> None:
    path = tmp_path / "instance_events-0.json"
    path.write_text(
        instance(600, "0")
        + instance(600, "3")
        + instance(700, 10, resource_request={"cpus": 0.04, "memory": 0.01})
        + instance(800, "FINISH")
        + instance(800, "SCHEDULE", "6", alloc_collection_id="5")
        + instance(900, 3, "7", alloc_collection_id=None)
        + '{"time": "9'
        + "\n"
    )
    found = google_2019.read(path, HOST)
    assert found.trace.servers.rows() == [
        (0, 100, 2.0, 1024, None, None, "5"),
        (100, 200, 4.0, 1024, None, None, "5"),
        (300, None, 2.0, 1024, None, None, "7"),
    ]
    assert found.trace.dropped == (
        Dropped("it runs within an alloc, whose instance counts", 1, 5),
        Dropped("it is no JSON object", 1, 7),
    )


def test_events_in_any_order_tell_the_same(tmp_path: Path) -> None:
    path = tmp_path / "task_events.csv"
    rows = [task(10, 1), task(20, 8, memory="0.03"), task(30, 5), task(40, 1), task(15, 1, "8")]
    path.write_text("".join(rows))
    sorted_ones = google_2011.read(path, HOST)
    path.write_text("".join(reversed(rows)))
    other = google_2011.read(path, HOST)
    assert other.trace.servers.equals(sorted_ones.trace.servers)
    assert any("start before the row ahead" in note for note in other.notes)


def test_tasks_of_one_size_that_never_end_are_as_many_servers(tmp_path: Path) -> None:
    path = tmp_path / "task_events.csv"
    path.write_text("".join(task(10, 1, str(number)) for number in range(8)))
    assert google_2011.read(path, HOST).trace.servers.height == 8
