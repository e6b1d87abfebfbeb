"""Tiers, hardware, verdicts: by hand."""

from dataclasses import replace

import pytest

from pondstack.planner import money
from pondstack.planner.answers.verdict import verdict
from pondstack.planner.estimate import estimate
from pondstack.planner.figures import Dram, Estimate, Slowdown
from pondstack.planner.latency import extra_ns, latency_percent
from pondstack.planner.settings import Settings

ZERO = Estimate(0.0, 0.0, 0.0, (0.0,))


def make_dram(without: tuple[float, ...], needed: tuple[float, ...], policy: str = "pond", size: int = 16) -> Dram:
    """Return an answer with these GiB per socket, seed by seed."""
    settings = Settings()
    saved = [100 * (1 - after / before) for before, after in zip(without, needed, strict=True)]
    return Dram(
        policy, "emc", size, estimate(saved, settings), estimate(needed, settings), estimate(without, settings),
        ZERO, ZERO, ZERO, ZERO, ZERO, 90.0, 215.0,
    )  # fmt: skip


def test_tiers_reproduce_the_paper() -> None:
    """Hybrid pool, section III.F: 32.2 % at R = 1.5 and 72.5 % at R = 4."""
    found = {item.overcommit_ratio: item for item in money.tiering(Settings())}
    assert round(found[1.5].saved_percent, 1) == 32.2
    assert round(found[4.0].saved_percent, 1) == 72.5
    assert (found[1.0].cost, found[1.0].saved_percent) == (4.875, 0.0)


def test_a_ratio_below_one_is_refused() -> None:
    """It would buy more DRAM than is asked for."""
    with pytest.raises(ValueError, match="overcommit_ratios"):
        money.tiering(Settings(overcommit_ratios=(0.5,)))


def test_hardware_per_socket() -> None:
    """One controller for 16 sockets; four, and two switches, for 64; a switch at any size where it is the topology."""
    settings = Settings(emc_price=320, switch_price=640, cable_price=5, emc_watts=32, switch_watts=64)
    assert money.hardware("emc", 16, settings) == (25.0, 2.0)
    assert money.hardware("emc", 64, settings) == (4 * 320 / 64 + 2 * 640 / 64 + 5, 4.0)
    assert money.hardware("switch", 16, settings) == (65.0, 6.0)


def test_latency_by_pool_size() -> None:
    """Pond, section 4.1: 70 ns up to 8 sockets, 90 up to 16, 180 beyond; a switch-only design is 1/3 slower."""
    settings = Settings()
    assert [extra_ns("emc", size, settings) for size in (2, 8, 16, 32, 64)] == [70, 70, 90, 180, 180]
    less = 1 - latency_percent("emc", 16, settings) / latency_percent("switch", 16, settings)
    assert less == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.parametrize(
    ("needed", "expected"),
    [((60.0, 62.0), "buy"), ((99.0, 100.0), "do not buy"), ((95.0, 10.0), "undecided"), ((110.0, 120.0), "do not buy")],
)
def test_whether_to_buy(needed, expected) -> None:
    """The hardware costs 100 $ a socket, DRAM 5 $/GiB, electricity nothing: 20 GiB have to be saved for it."""
    settings = Settings(
        emc_price=1600, cable_price=0, dram_price_per_gib=5, energy_price_per_kwh=0, confidence_percent=99
    )
    found = money.money(make_dram((100.0, 100.0), needed), settings)
    assert found.hardware_cost == 100.0
    assert found.net_saved.by_seed == tuple(5 * (100 - value) - 100 for value in needed)
    assert found.verdict == expected


def test_electricity_counts_over_the_lifetime() -> None:
    """1 W more per socket over a year at 1 $/kWh: 8.766 $."""
    settings = Settings(emc_watts=16, dram_watts_per_gib=0, lifetime_years=1, energy_price_per_kwh=1)
    assert money.money(make_dram((100.0,), (90.0,)), settings).energy_cost.mean == pytest.approx(8.766)


def test_the_verdict_in_a_sentence() -> None:
    """What nets the most decides, if it keeps the slowdown budget; an oracle cannot be bought."""
    settings = Settings(emc_price=1600, cable_price=0, dram_price_per_gib=5, energy_price_per_kwh=0)
    dram = [make_dram((100.0,), (70.0,), policy) for policy in ("static", "pond", "oracle")]
    dram[0] = make_dram((100.0,), (50.0,), "static")
    worth = [money.money(item, settings) for item in dram]
    slowed = [Slowdown(item.policy, "emc", 16, ZERO, ZERO, 2.0, item.policy != "static") for item in dram]
    assert verdict(worth, dram, slowed).startswith("Buy: policy pond with pools of 16 sockets")
    nothing = [replace(item, within_budget=False) for item in slowed]
    assert verdict(worth, dram, nothing) == "Do not buy: no policy keeps the slowdown budget."
    poor = [money.money(make_dram((100.0,), (95.0,)), settings)]
    assert verdict(poor, [make_dram((100.0,), (95.0,))], slowed[1:2]).startswith("Do not buy: even the best")
    assert verdict([], [], []).startswith("Do not buy")


def test_intervals() -> None:
    """Of one seed it is the value; it holds the mean; a run repeats."""
    settings = Settings()
    assert estimate([3.0], settings) == Estimate(3.0, 3.0, 3.0, (3.0,))
    found = estimate([1.0, 2.0, 3.0, 10.0], settings)
    assert found.low < found.mean == 4.0 < found.high
    assert found == estimate([1.0, 2.0, 3.0, 10.0], settings)
