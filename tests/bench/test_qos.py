"""`make bench-qos` in small: it measures what it says, and fails when the target does."""

import pytest

from bench import qos

SMALL = ["--vms", "40", "--hosts", "2", "--touched", "10", "--rounds", "2", "--database", "sqlite"]


@pytest.mark.parametrize(("seconds", "status"), [(60.0, 0), (0.0, 1)])
def test_a_run(seconds, status, monkeypatch, capsys):
    monkeypatch.setattr(qos, "TARGET_SECONDS", seconds)
    assert qos.main(SMALL) == status
    out = capsys.readouterr().out
    assert ("OK" if status == 0 else "FAILED") in out
    assert "40        4 " in out


def test_a_round_that_decided_less_is_no_figure(monkeypatch):
    monkeypatch.setattr(qos, "TOUCHED_MIB", qos.FITS_MIB)
    with pytest.raises(RuntimeError, match="0 decisions of 4"):
        qos.main(SMALL)
