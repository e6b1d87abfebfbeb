"""The process that replays: what it leaves, what it says of what cannot be replayed, and that it leaves no orphan."""

import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pondstack import bounded_process
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.planner import answers as answers_module
from pondstack.planner.job import process, worker
from pondstack.planner.job.order import Order
from pondstack.planner.settings import Settings
from pondstack.planner.trace import Trace
from tests.fixtures.sample_answers import answers

NOW = datetime(2026, 11, 27, 6, tzinfo=UTC)
LIMITS = bounded_process.Limits(600, 4096)


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Trace, Settings]]:
    """What is given to the replay, which is none here."""
    given: list[tuple[Trace, Settings]] = []

    def answer(trace: Trace, settings: Settings, *, progress: Any) -> Any:
        given.append((trace, settings))
        progress(3, 7)
        if settings.seeds == (13,):
            raise ValueError("one socket has no room for the largest server")
        return answers(synthetic=trace.origin == "synthetic")

    monkeypatch.setattr(answers_module, "answer", answer)
    return given


def order(folder: Path, **given: Any) -> None:
    (folder / worker.ORDER).write_text(json.dumps(Order.checked(given).to_record()))


def instance(uuid: str, ended: datetime | None = None, untouched: float | None = None) -> str:
    found = {"uuid": uuid, "project_id": "blue", "vcpus": 2, "memory_mib": 4096, "untouched_percent": untouched}
    times = {"started": (NOW - timedelta(days=1)).isoformat(), "ended": None if ended is None else ended.isoformat()}
    return json.dumps(found | times) + "\n"


def test_a_generated_trace_is_labelled(tmp_path: Path, replayed: list[tuple[Trace, Settings]]) -> None:
    order(tmp_path, source="generated", servers=50, days=1, settings={"seeds": [4, 5]})
    worker.work(tmp_path)
    [(trace, settings)] = replayed
    assert (trace.origin, settings.seeds) == ("synthetic", (4, 5))
    assert json.loads((tmp_path / worker.PROGRESS).read_text()) == [3, 7]
    made = json.loads((tmp_path / worker.ANSWERS).read_text())
    assert made["command"].startswith("openstack memory planner run --source generated --servers 50 --days 1")
    assert "SYNTHETIC" in (tmp_path / worker.SUMMARY).read_text()
    assert "SYNTHETIC" in (tmp_path / worker.PAGE).read_text()


def test_the_clouds_own_history(tmp_path: Path, replayed: list[tuple[Trace, Settings]]) -> None:
    order(tmp_path, window_days=2.0, sockets_per_host=1)
    lines = [instance("a"), instance("b", untouched=25.0), instance("a", ended=NOW)]
    (tmp_path / worker.INSTANCES).write_text("".join(lines))
    hosts = {"number": 4, "vcpus": 64, "memory_mib": 4 * 65_536}
    told = {"since": (NOW - timedelta(days=2)).isoformat(), "until": NOW.isoformat(), "hosts": hosts, "synthetic": 1}
    (tmp_path / worker.WINDOW).write_text(json.dumps(told))
    worker.work(tmp_path)
    [(trace, settings)] = replayed
    assert trace.origin == "pondstack"
    assert trace.servers["untouched_percent"].to_list() == [None, 25.0]
    assert trace.servers["end_seconds"].to_list() == [86_400, None], "what Nova told last of an instance counts"
    assert (settings.sockets, settings.vcpus_per_socket, settings.dram_gib_per_socket) == (4, 16, 64.0)
    notes = json.loads((tmp_path / worker.ANSWERS).read_text())["trace"]["notes"]
    assert "untouched memory is known of 1 instances, by pondstack's history; 1 of them are SYNTHETIC" in notes


def test_what_cannot_be_replayed_is_said(
    tmp_path: Path, replayed: list[tuple[Trace, Settings]], monkeypatch: pytest.MonkeyPatch
) -> None:
    del replayed
    order(tmp_path, source="generated", servers=50, days=1, settings={"seeds": [13]})
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path)])
    monkeypatch.setattr(bounded_process, "end_with_parent", lambda: None)
    assert worker.main() == 1
    assert (tmp_path / worker.ERROR).read_text() == "one socket has no room for the largest server"


def script(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Have a process of ours do something else than replay."""

    def begin(_module: str, folder: Path, _limits: Any, _more: Any = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", text, str(folder)], stdin=subprocess.PIPE)

    monkeypatch.setattr(bounded_process, "begin", begin)
    monkeypatch.setattr(process, "POLL_SECONDS", 0.01)


WAITS = "import sys; sys.stdin.read()"


def test_one_that_is_not_wanted_any_more_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, WAITS)
    (tmp_path / worker.PROGRESS).write_text("[1, 9]")
    told, children = [], []

    def follow(done: int, total: int) -> bool:
        told.append((done, total))
        return len(told) < 2

    assert process.replay(tmp_path, LIMITS, follow, children.append, time.monotonic) is None
    assert told == [(1, 9), (1, 9)]
    assert children[0].returncode == -signal.SIGKILL


def test_one_that_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, WAITS)
    children: list[subprocess.Popen[bytes]] = []
    moments = iter([0.0, 600.0])
    with pytest.raises(Unavailable, match=r"more than 600 s and was killed; see \[planner\] seconds"):
        process.replay(tmp_path, LIMITS, lambda *_: True, children.append, lambda: next(moments))
    assert children[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("raise SystemExit(3)", Unavailable, "ended with 3"),
        ("import os; os.kill(os.getpid(), 9)", Unavailable, "ended with -9"),
        (
            "import sys; open(sys.argv[1] + '/error.txt', 'w').write('no room'); raise SystemExit(1)",
            BadRequest,
            "no room",
        ),
    ],
)
def test_how_it_failed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, error: type[Exception], told: str
) -> None:
    script(monkeypatch, text)
    with pytest.raises(error, match=told):
        process.replay(tmp_path, LIMITS, lambda *_: True, lambda _: None, time.monotonic)
