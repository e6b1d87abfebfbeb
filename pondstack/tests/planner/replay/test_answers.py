"""All answers to a small trace, from end to end."""

import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest

from pondstack.planner.answers import answer
from pondstack.planner.settings import Settings
from pondstack.tests.planner.replay.test_history import make_trace

FEW = Settings(
    seeds=(1, 2), pool_sockets=(2, 64), policies=("static", "oracle"), pool_shares=(1.0,), vcpus_per_socket=8,
    energy_steps=4, dram_step_mib=1024, resamples=50,
)  # fmt: skip


def some_trace():
    """Return 300 servers of some sizes over a day."""
    draw = np.random.default_rng(1)
    start = np.sort(draw.integers(0, 80_000, 300))
    sizes = draw.choice([2, 8, 32], 300)
    lasts = draw.integers(600, 20_000, 300)
    rows = [
        (int(at), int(at + last), 1.0, 1024 * int(size)) for at, last, size in zip(start, lasts, sizes, strict=True)
    ]
    return make_trace(rows, last=86_400)


def test_answers_are_whole_and_repeat(tmp_path: Path) -> None:
    """Each policy at each size that the cluster has sockets for; JSON; the same again from what was kept."""
    told: list[tuple[int, int]] = []
    found = answer(some_trace(), FEW, cache=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert [(item.policy, item.pool_sockets) for item in found.dram] == [("static", 2), ("oracle", 2)]
    assert len(found.slowdown) == len(found.offlining) == len(found.failures) == len(found.money) == 2
    assert [item.system for item in found.energy] == 2 * ["none", "neat", "oasis", "zombie"]
    assert all(len(item.saved_percent.by_seed) == 2 for item in found.dram)
    assert told[-1] == (told[-1][1], 2 + 2 * 2 + 2 * 8)
    assert not found.source.synthetic
    assert found.verdict
    json.dumps(asdict(found), allow_nan=False)
    assert answer(some_trace(), FEW, cache=tmp_path) == found
    assert answer(some_trace(), FEW) == found


def test_settings_say_unit_source_and_help() -> None:
    """A report shows them; what cannot be is refused by name."""
    assert all(item.metadata["help"] and item.metadata["source"] for item in fields(Settings))
    for name, wrong in (
        ("policies", ("best",)),
        ("static_percent", 101),
        ("seeds", ()),
        ("slice_mib", 0),
        ("repair_hours", -1),
        ("host_failures_per_year", float("nan")),
    ):
        with pytest.raises(ValueError, match=name):
            Settings(**{name: wrong})


def test_failures_count_in_the_answers(tmp_path: Path) -> None:
    """With 40 failures a year of a host and 20 of a pool, of which a server's share is what has memory there."""
    rates = replace(FEW, host_failures_per_year=40.0, pool_failures_per_year=20.0, policies=("static",))
    found = answer(some_trace(), rates, cache=tmp_path)
    (item,) = found.failures
    assert item.restarts.mean > 0
    assert item.without_pool == 40_000
    assert 40_000 < item.interruptions.mean < 60_000
    assert item.servers_per_host.mean > 0
    assert 0 < item.servers_per_pool.mean < 2 * item.servers_per_host.mean
    assert found != answer(some_trace(), replace(rates, repair_hours=400.0), cache=tmp_path), (
        "the cache tells them apart"
    )
