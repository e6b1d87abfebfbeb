"""`make bench-telemetry` in small: it measures what it says, and fails when a target does."""

import json

import pytest

from bench import telemetry

SMALL = ["--vms", "20", "--hosts", "2", "--turns", "1", "--seconds", "0.3", "--database", "sqlite"]


def test_a_window_has_what_agents_send():
    load = telemetry.Load(60, 2)
    sent = list(telemetry.batches(load))
    assert len(sent) == telemetry.BATCHES * 2
    samples = [sample for _, text in sent for sample in json.loads(text)]
    of_one = [item["metric"] for item in samples if item["consumer_uuid"] == samples[0]["consumer_uuid"]]
    assert (of_one.count("untouched_mib"), of_one.count("instructions_per_cycle")) == (3, telemetry.BATCHES)
    assert sum(item["metric"] == "scan_seconds" for item in samples) == 60 // telemetry.SCAN_EVERY


@pytest.mark.parametrize(("cpu", "status"), [(5.0, 0), (0.0, 1)])
def test_a_run(cpu, status, monkeypatch, capsys):
    monkeypatch.setattr(telemetry, "CPU_TARGET", cpu)
    monkeypatch.setattr(telemetry, "MEDIAN_TARGET", 1000.0)
    monkeypatch.setattr(telemetry, "TAIL_TARGET", 1000.0)
    assert telemetry.main(SMALL) == status
    assert ("OK" if status == 0 else "FAILED") in capsys.readouterr().out
