"""What the policies put on pools."""

import numpy as np
import pytest

from pondstack.planner.settings import Settings
from pondstack.planner.sizing import predicted, sizes_of, truly_insensitive_percent

GIB = 1024


def test_oracle_knows(make_history, settings) -> None:
    """Half of 8 GiB is untouched; of an insensitive server all but a slice is pooled."""
    history = make_history([(0, 1, 1, 8 * GIB)], untouched=0.5, insensitivity=0.99)
    assert sizes_of("oracle", history, settings, 182.0).pool_mib.tolist() == [4 * GIB]
    history = make_history([(0, 1, 1, 8 * GIB)], untouched=0.5, insensitivity=0.0)
    found = sizes_of("oracle", history, settings, 182.0)
    assert (found.pool_mib.tolist(), found.labelled.tolist()) == ([7 * GIB], [True])


def test_small_servers_have_no_slice(make_history, settings) -> None:
    """A static share of 15 % of 1.75 GiB is less than 1 GiB: nothing."""
    history = make_history([(0, 1, 1, 1792)])
    assert sizes_of("static", history, settings, 182.0).pool_mib.tolist() == [0]
    assert sizes_of("none", history, settings, 182.0).pool_mib.tolist() == [0]


def test_models_err_as_often_as_the_paper_says(make_history) -> None:
    """LI, FP, UM and OP over many servers, all with a history."""
    settings, draw = Settings(history_percent=100.0), np.random.default_rng(1)
    history = make_history([(0, 1, 1, 64 * GIB)] * 40_000)
    for name in ("untouched", "insensitivity", "label", "over", "factor"):
        getattr(history, name)[:] = draw.random(40_000)
    labelled = sizes_of("pond", history, settings, 182.0).labelled
    insensitive = history.insensitivity < 0.43
    assert 100 * labelled.mean() == pytest.approx(30.0, abs=1.0)
    assert 100 * (labelled & ~insensitive).mean() == pytest.approx(2.0, abs=0.3)
    share = predicted(history, settings)
    assert 100 * share.mean() == pytest.approx(25.0, abs=1.0)
    assert 100 * (share > history.untouched).mean() == pytest.approx(4.0, abs=0.4)


def test_fewer_servers_are_insensitive_to_more_latency() -> None:
    """43 % at 182 %, 37 % at 222 % (Pond, section 3.3), on a line, never below none."""
    settings = Settings()
    assert truly_insensitive_percent(settings, 182.0) == 43.0
    assert truly_insensitive_percent(settings, 222.0) == 37.0
    assert truly_insensitive_percent(settings, 1000.0) == 0.0
