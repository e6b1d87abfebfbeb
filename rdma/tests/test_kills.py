"""A short run of `make robustness-rdma`: lenders killed under load, no page wrong or lost."""

from pathlib import Path

import pytest

from .kills import Options, report, run


@pytest.mark.parametrize(
    ("driver", "sealed"), [("shm", True), ("tcp", True), ("shm", False)], ids=["shm", "tcp", "shm-plain"]
)
def test_lenders_are_killed_under_load(tmp_path: Path, driver: str, sealed: bool) -> None:
    options = Options(3, 20181, driver, mib=1, load_seconds=0.2, sealed=sealed)
    result = run(options, tmp_path)
    print(report(options, result))
    assert not result.wrong, report(options, result)
    assert len(result.noticed) == options.kills
    assert result.at_stake
    assert result.reads
