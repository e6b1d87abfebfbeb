"""Each kind of leak is found; a rack that was not empty before is no leak."""

import dataclasses
from typing import Any

import pytest
from keystoneauth1.exceptions import ConnectFailure

from bench.figures import percentile
from pondstack_rack import proof

POOL = proof.PoolState(name="pool0", slices_total=8, free=6, in_ledger=8, claimed_mib=2048)
BEFORE = proof.State({"p": POOL}, allocations=frozenset({"a"}), claims=frozenset({"c"}), findings=())


def test_the_state_of_before_is_no_leak() -> None:
    assert proof.leaks(BEFORE, BEFORE) == []
    assert proof.leaks(None, BEFORE) == []


def test_less_than_before_is_no_leak() -> None:
    emptier = dataclasses.replace(POOL, free=8, claimed_mib=0)
    assert proof.leaks(BEFORE, proof.State({"p": emptier}, frozenset(), frozenset(), ())) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"allocations": frozenset({"a", "b"})}, "allocation b"),
        ({"claims": frozenset({"c", "d"})}, "consumer d"),
        ({"findings": ("agent_unknown host1: it reports slice 3",)}, "audit: agent_unknown"),
        ({"servers": frozenset({"s"})}, "server s"),
        ({"pools": {}}, "is gone"),
        ({"pools": {"p": dataclasses.replace(POOL, free=5)}}, "5 slices are free, 6 were before"),
        ({"pools": {"p": dataclasses.replace(POOL, claimed_mib=3072)}}, "Placement claims 3072 MiB"),
        ({"pools": {"p": dataclasses.replace(POOL, in_ledger=7)}}, "7 of 8 slices have a state"),
    ],
)
def test_each_leak_is_found(change: dict[str, Any], text: str) -> None:
    (found,) = proof.leaks(BEFORE, dataclasses.replace(BEFORE, **change))
    assert text in found


def test_settling_waits_for_what_goes_away_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "LOOK_SECONDS", 0.001)
    states = iter([dataclasses.replace(BEFORE, claims=frozenset({"c", "d"})), BEFORE])
    state, found, _ = proof.settle(lambda: next(states), BEFORE, seconds=5)
    assert state is BEFORE
    assert found == []


def test_settling_gives_up_with_what_still_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "LOOK_SECONDS", 0.001)

    def silent() -> proof.State:
        raise ConnectFailure("refused")

    state, found, _ = proof.settle(silent, BEFORE, seconds=0.01)
    assert state is None
    assert "refused" in found[0]


@pytest.mark.parametrize(("percent", "value"), [(50, 2.0), (99, 4.0), (100, 4.0), (1, 1.0)])
def test_a_percentile_is_a_measured_value(percent: float, value: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], percent) == value
    assert percentile([], percent) != percentile([], percent)
