"""`make bench-lifetime`: on traces whose lifetimes are known, and with what it should refuse."""

import csv
import gzip
import random

import pytest

from bench import lifetime

COLUMNS = ("arrival_s", "batch_id", "cores", "mem_gb", "dur_bin", "dur_lo_s", "dur_hi_s", "censored")
END = 400_000


def trace(folder, rows):
    with gzip.open(folder / lifetime.FILE, "wt", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    return folder


@pytest.fixture
def heavy_tailed(tmp_path):
    """Half of the lives end within minutes, others last for hours; what is still there at the end is cut off."""
    chance, rows = random.Random(5), []
    for number in range(6000):
        arrived = number * END // 6000
        lived = 600 * (chance.paretovariate(0.9) - 0.9)
        cut = arrived + lived > END
        rows.append((arrived, number // 2, 1, 2, 1, *[END - arrived if cut else lived] * 2, int(cut)))
    return trace(tmp_path, rows)


def test_calibration_holds_where_it_should(heavy_tailed, capsys):
    assert lifetime.main(["--data", str(heavy_tailed), "--draws", "20"]) == 0
    out = capsys.readouterr().out
    assert "4,200 VMs before the split, 1,800 after it" in out
    assert out.splitlines()[-1].startswith("OK: mean distance to the share that was said: median 0.0")


def test_lives_that_change_after_the_split_fail(tmp_path, capsys):
    chance = random.Random(6)
    rows = [
        (100 * number, number, 1, 2, 1, *[chance.uniform(5000, 9000) * (9 if number > 1500 else 1)] * 2, 0)
        for number in range(0, 3000)
    ]
    assert lifetime.main(["--data", str(trace(tmp_path, rows)), "--split", "0.5", "--draws", "5"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_ends_that_were_not_seen_are_weighed():
    chance = random.Random(7)
    asked = []
    for number in range(4000):
        rest, seen = chance.expovariate(1.0), chance.uniform(0, 3)
        asked.append(lifetime.Asked(str(number), min(rest, seen), rest <= seen, 0.693, None, 0.0))
    hits, count = lifetime.within(asked, lambda one: one.median, lifetime.Seen(asked))
    assert hits / count == pytest.approx(0.5, abs=0.03)
    assert lifetime.within(asked, lambda one: one.p90, lifetime.Seen(asked)) == (0.0, 0)
    assert lifetime.within(asked, lambda _one: 5.0, lifetime.Seen(asked)) == (0.0, 0), "nobody was seen so long"


@pytest.mark.parametrize(
    ("rows", "told"),
    [([], "no requests"), ([(0, 0, 1, 2, 1, "x", 5, 0)], "line 2"), ([(0, 0, 1, 2, 1, 5, 5, 0)], "--split")],
)
def test_what_is_no_trace(tmp_path, rows, told, capsys):
    with pytest.raises(SystemExit):
        lifetime.main(["--data", str(trace(tmp_path, rows))])
    assert told in capsys.readouterr().err


def test_a_folder_without_one(tmp_path, capsys):
    with pytest.raises(SystemExit):
        lifetime.main(["--data", str(tmp_path)])
    assert lifetime.FILE in capsys.readouterr().err
