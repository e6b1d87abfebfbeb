"""`make bench-extension` without its measurement: penalties, verdicts, what consoles say, the command line."""

import math
from pathlib import Path

import pytest

from bench.extension.__main__ import arguments_of
from bench.extension.accessed_bit import PARAMETERS, faults, skewed
from bench.extension.guest import Figure, figures
from bench.extension.guest_tables import BARE, EXPLICIT, EXTENSION, LOCAL, Turns, page_rows, rows, verdicts
from bench.extension.micro import Turn
from bench.extension.overcommit import Split
from bench.extension.overcommit import rows as overcommit_rows
from bench.extension.penalties import ENDLESS, Penalty, beats, fewer, table
from bench.extension.plots import Plots, columns
from bench.extension.swap_areas import CannotMeasure, areas


def penalty(*percents: float) -> Penalty:
    """Return one of these rounds."""
    return Penalty(percents)


def test_a_penalty_compares_turns_of_the_same_round() -> None:
    found = Penalty.of([2.0, 3.0, 8.0], [1.0, 2.0, 4.0])
    assert found.percents == (100.0, 50.0, 100.0)
    assert found.median == 100.0
    assert str(found) == "100 % (50.0 % - 100 %)"


def test_a_turn_without_end_is_infinitely_slow() -> None:
    found = Penalty.of([math.inf, 1.5, math.inf], 1.0)
    assert math.isinf(found.median)
    assert str(found) == f"{ENDLESS} (50.0 % - {ENDLESS})"
    assert str(Penalty.of([math.inf], 1.0)) == ENDLESS


def test_of_two_rounds_the_worse_one_counts() -> None:
    assert math.isinf(Penalty.of([1.0, math.inf], 1.0).median)


@pytest.mark.parametrize(("turns", "local"), [([], 1.0), ([1.0], [1.0, 2.0]), ([1.0], 0.0), ([1.0], math.inf)])
def test_nothing_is_compared_with_nothing(turns: list[float], local: float | list[float]) -> None:
    with pytest.raises(ValueError):
        Penalty.of(turns, local)


@pytest.mark.parametrize(
    ("ours", "theirs", "held"),
    [
        (5.0, 10.0, True),
        (10.0, 5.0, False),
        (5.9, 5.0, True),  # within a percent
        (6.1, 5.0, False),
        (5.0, math.inf, True),
        (math.inf, 5.0, False),
        (math.inf, math.inf, True),
    ],
)
def test_the_smaller_penalty_wins(ours: float, theirs: float, held: bool) -> None:
    verdict = beats("ours", {"here": penalty(ours)}, {"here": penalty(theirs), "elsewhere": penalty(0.0)})
    assert verdict.held is held
    assert ("MISSED" in str(verdict)) is not held
    assert ("not at here" in verdict.why) is not held


def test_one_lost_place_loses() -> None:
    ours = {"20 %": penalty(50.0), "50 %": penalty(9.0)}
    verdict = beats("ours", ours, {"20 %": penalty(40.0), "50 %": penalty(10.0)})
    assert not verdict.held
    assert verdict.why == "at 1 of 2 places, not at 20 %: 50.0 % against 40.0 %"


def test_fewer_judges_by_the_mean_of_ratios() -> None:
    assert fewer("x", {"a": 1.0, "b": 3.0}, {"a": 4.0, "b": 2.0}).held
    assert not fewer("x", {"a": 4.0, "b": 1.0}, {"a": 1.0, "b": 2.0}).held
    assert not fewer("x", {"a": 1.0}, {"a": 1.0}).held
    with pytest.raises(ValueError):
        fewer("x", {"a": 1.0}, {"a": 0.0})


def test_a_table_is_markdown() -> None:
    assert table(("a", "bc"), [("d", "efgh")]) == "| a   | bc   |\n| --- | ---- |\n| d   | efgh |"
    with pytest.raises(ValueError):
        table(("a", "b"), [("c",)])


def test_a_console_is_read_past_what_the_kernel_prints() -> None:
    lines = [
        "[    0.1] Linux version 6.12\n",
        'FIGURE {"name": "micro", "seconds": 1.5, "pswpin": 3, "pswpout": 4}\n',
        'FIGURE {"na[ 12.0] virtio\n',
        '[   13.1] late: FIGURE {"name": "valkey", "seconds": null, "pswpin": 0, "pswpout": 0}\n',
        'FIGURE {"name": "sqlite", "failed": "it ended: out of memory"}\n',
        'FIGURE {"done": true}\n',
        'FIGURE {"name": "late", "seconds": 1}\n',
    ]
    counts = iter([(10, 1), (25, 2), (26, 2)])
    assert figures(lines, lambda: next(counts)) == {
        "micro": Figure(1.5, 3, 4, 10, 1),
        "valkey": Figure(math.inf, 0, 0, 15, 1),
        "sqlite": Figure(math.inf, 0, 0, 1, 0),
    }


@pytest.mark.parametrize("lines", [['FIGURE {"failed": "no swap disk"}'], ["Kernel panic"], []])
def test_a_guest_that_fails_is_told_of_with_its_last_lines(lines: list[str]) -> None:
    with pytest.raises(CannotMeasure) as raised:
        figures(["before", *lines])
    assert "before" in str(raised.value)


def turn(**seconds: float) -> dict[str, Figure]:
    """Return what a guest told."""
    return {name: Figure(value, 0, 0) for name, value in seconds.items()}


def test_table_2_has_a_row_for_each_share_and_a_column_for_each_way() -> None:
    found: Turns = {
        (LOCAL, 100): [turn(micro=1.0), turn(micro=2.0)],
        (EXTENSION, 50): [turn(micro=1.1), turn(micro=2.2)],
        (EXPLICIT, 50): [turn(micro=3.0), turn(micro=6.0)],
        (BARE, 50): [turn(micro=1.05), turn(micro=2.1)],
    }
    assert rows(found, "micro").splitlines()[0].split("|")[1:-1][0].strip() == "local memory"
    assert [cell.strip() for cell in rows(found, "micro").splitlines()[2].split("|")[1:3]] == ["50 %", "10.0 %"]
    assert [verdict.held for verdict in verdicts(found, ["micro"])] == [True, False]


def test_pages_are_faults_under_the_pager_and_swapped_in_elsewhere() -> None:
    found: Turns = {
        (LOCAL, 100): [turn(micro=1.0)],
        (EXTENSION, 80): [{"micro": Figure(1.0, 0, 0, 30)}, {"micro": Figure(1.0, 0, 0, 50)}],
        (EXPLICIT, 80): [{"micro": Figure(1.0, 7, 9)}],
    }
    assert [cell.strip() for cell in page_rows(found, "micro").splitlines()[2].split("|")[1:4]] == ["80 %", "40", "7"]


def test_a_plot_shows_what_ended_in_all_rounds() -> None:
    places = {80.0: (1.0, 2.0, 4.0), 50.0: (10.0,), 20.0: (math.inf, 5.0, 5.0)}
    assert columns(places) == ([50.0, 80.0], [10.0, 2.0], [0.0, 1.0], [0.0, 2.0])


def test_the_same_figures_are_the_same_plot(tmp_path: Path) -> None:
    lines = {"fifo": {20.0: (41.0, 42.5), 50.0: (17.0, 17.5)}}
    first, second = (Plots(tmp_path / each).write("figure-8", "faults", "local", lines, "faults") for each in "ab")
    assert "fifo" in first.read_text()
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("ratio", "local", "lent"), [(1.0, 64, 68), (1.5, 42, 44), (2.0, 32, 32), (3.0, 21, 24), (4.0, 16, 16)]
)
def test_dram_is_a_part_of_the_memory_by_the_ratio_and_half_of_it_is_local(ratio: float, local: int, lent: int) -> None:
    assert Split.of(128, ratio) == Split(local, lent)


@pytest.mark.parametrize(("memory", "ratio"), [(128, 0.9), (1, 1.0)])
def test_what_cannot_be_split_is_refused(memory: int, ratio: float) -> None:
    with pytest.raises(ValueError):
        Split.of(memory, ratio)


def test_overcommit_is_compared_with_a_ratio_of_one() -> None:
    turns = {("w", 1.0): [Turn(2.0, 0, 0.0, 0.0, faults=10)], ("w", 2.0): [Turn(3.0, 0, 0.0, 0.0, faults=25)]}
    cells = [cell.strip() for cell in overcommit_rows(turns).splitlines()[3].split("|")]
    assert cells[2:6] == ["2", "50.0 %", "25 (25 - 25)", "2.50"]


def test_swap_areas_are_read_as_the_kernel_lists_them() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0  partition 8 0 -2\n/swap\\040file file 8 0 -3\n"
    )
    assert areas(text) == ["/dev/zram0", "/swap\\040file"]
    assert areas(text.splitlines()[0] + "\n") == []


def test_the_command_line_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    assert arguments_of(["--ratios", "4,2", "--workloads", ""]).ratios == [1.0, 2.0, 4.0]
    assert arguments_of(["--workloads", ""]).workloads == []
    for words in (["--parts", "tea"], ["--rounds", "0"], ["--shares", "50,100"], ["--ratios", "0.5"], ["--ways", "x"]):
        with pytest.raises(SystemExit):
            arguments_of(words)
    assert "choose of faults" in capsys.readouterr().err


@pytest.mark.parametrize("clears", [True, False])
def test_mixed_is_fifo_even_with_the_accessed_bit_of_page_tables(clears: bool) -> None:
    """Five pages that are spared once are all that it differs by: what the documentation says of Fig. 8."""
    found = {policy: faults(policy, 512, 40, 4 * 512, 1, clears) for policy in PARAMETERS}
    assert found["mixed"] == pytest.approx(found["fifo"], abs=1.0)
    assert found["s3-fifo"] < found["fifo"] - 2


def test_the_trace_of_the_simulation_prefers_a_fifth_of_the_pages() -> None:
    chosen = list(skewed(100, 2000, 1))
    assert 0.8 < sum(page <= 20 for page in chosen) / len(chosen) < 0.9
    assert chosen != list(skewed(100, 2000, 2))
