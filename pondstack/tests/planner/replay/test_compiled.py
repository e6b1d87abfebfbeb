"""Where what was compiled is kept."""

from pathlib import Path

import pytest
from numba import config

from pondstack.domain import host_choice, share
from pondstack.planner.replay import compiled


def test_a_change_of_any_source_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a function that others call: Numba alone would not see it."""
    assert {Path(host_choice.__file__), Path(share.__file__)} < set(compiled.SOURCES)
    source = tmp_path / "source.py"
    source.write_text("COMFORT_BUFFERS = 2\n")
    monkeypatch.setattr(compiled, "SOURCES", (source,))
    before = compiled.digest()
    assert compiled.digest() == before
    source.write_text("COMFORT_BUFFERS = 3\n")
    assert compiled.digest() != before


def test_numba_s_own_setting_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others of the process may compile, too; without a folder it works all the same."""
    before = config.CACHE_DIR
    assert compiled.jit(_twice)(3) == 6
    assert before == config.CACHE_DIR
    monkeypatch.setattr(compiled, "FOLDER", None)
    assert compiled.jit(_twice)(4) == 8


def _twice(number: int) -> int:
    return 2 * number
