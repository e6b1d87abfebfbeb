"""What the replay's command says before it needs a rack."""

from pathlib import Path

import pytest

from bench import replay, split_reasons
from bench.player import Outcome
from bench.trace import Request


@pytest.mark.parametrize(("memory_mib", "pool_mib"), [(768, 0), (1792, 0), (3584, 0), (7168, 1024), (14336, 2048)])
def test_the_static_policy_gives_small_vms_nothing(memory_mib: int, pool_mib: int) -> None:
    assert replay.policy_mib(memory_mib) == pool_mib


def test_without_a_rack_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main(["--rack", str(tmp_path), "--trace", "synthetic"]) == 2
    assert "make rack" in capsys.readouterr().err


def test_a_missing_trace_is_an_error_and_not_a_synthetic_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay.main(["--rack", str(tmp_path), "--trace", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err


def test_without_the_default_trace_the_run_is_called_synthetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "DEFAULT_TRACE", tmp_path / "none.csv")
    options = replay._options(["--requests", "7"])
    requests, source = replay._requests(options)
    assert len(requests) == 7
    assert "SYNTHETIC" in source


def test_who_has_no_split_and_why() -> None:
    """Time, staleness and a missing view are losses, to small servers too; what was decided is none."""
    told = {"a": "static", "b": "timeout", "c": "no_view", "d": "static", "e": "no_room", "f": "stale"}
    placed = [
        Outcome(Request(0.0, 1.0, 1, 7168), server, placed=True, pool_mib=1024 if server in "a" else 0)
        for server in "abcdefg"
    ]
    placed.append(Outcome(Request(0.0, 1.0, 1, 1024), "h", placed=True))
    told["h"] = "stale"
    without, less = split_reasons.reasons(placed, lambda item: replay.policy_mib(item.request.memory_mib), told.get)
    assert without == {"timeout": 1, "no_view": 1, "stale": 2, split_reasons.NOT_TOLD: 1}
    assert less == {split_reasons.NO_ROOM: 1, "no_room": 1}
