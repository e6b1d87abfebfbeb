"""The benchmark of live migrations: what its table says of figures, and which counters it adds up."""

import pytest

from bench.migration import __main__ as command
from bench.migration import report
from bench.migration.network import JOINS, LENDERS, Wire
from bench.migration.turns import APART, ORDINARY, SHARED, SLICES, Figure

MIB = 2**20


def figure(mib: float, wrong: int = 0) -> Figure:
    return Figure(Wire(0, int(mib * MIB), 0), 0.2, 2.0, 0.1, wrong)


def found(*shared: float, wrong: int = 0, way: str = SHARED) -> report.Found:
    return {
        (ORDINARY, 50): [figure(100) for _ in shared],
        (way, 50): [figure(mib) for mib in shared],
        (APART, 50): [figure(113, wrong) for _ in shared],
    }


@pytest.mark.parametrize("way", [SHARED, SLICES])
@pytest.mark.parametrize(("shared", "holds"), [((54, 60, 90), True), ((54, 61, 90), False)])
def test_the_median_of_ratios_is_judged(way: str, shared: tuple[float, ...], holds: bool) -> None:
    """Mirrors of hosts' own are shown, and no target."""
    judged = report.verdicts(found(*shared, way=way))
    assert [held for _, held in judged] == [holds, True]
    assert "0.6" in judged[0][0]


def test_a_wrong_word_fails() -> None:
    assert [held for _, held in report.verdicts(found(54, wrong=1))] == [True, False]


def test_a_ratio_is_of_one_round() -> None:
    figures = {(ORDINARY, 50): [figure(100), figure(200)], (SHARED, 50): [figure(50), figure(50)]}
    assert report.ratios(figures, SHARED, 50) == [0.5, 0.25]
    assert [line for line in report.rows(figures) if "0.38 (0.25 - 0.50)" in line]


def test_every_link_counts() -> None:
    assert (Wire(5, 7, 11) - Wire(1, 2, 3)).all == 17
    for join in JOINS:
        near, far = (join.address(host) for host in join.hosts)
        assert near != far
    assert len({join.network for join in JOINS}) == len(JOINS)
    assert sum(LENDERS in join.hosts for join in JOINS) == 2


def test_what_cannot_be_compared_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--shares", "10", "--apart", "50"], ["--words-mib", "300"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            command.arguments_of(words)
    assert "choose 1 to 100" in capsys.readouterr().err
