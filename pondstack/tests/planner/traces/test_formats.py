"""The list of formats, beside what users read of it."""

from pathlib import Path
from pkgutil import resolve_name

import pytest

from pondstack.cmd import planner_options
from pondstack.planner.traces import formats

PAGE = Path(__file__).resolve().parents[4] / "doc" / "source" / "reference" / "trace-formats.md"
ALL = {**{name: about for name, (_, about) in formats.LOADERS.items()}, **formats.CLOUDS}


@pytest.mark.parametrize("name", ALL)
def test_each_format_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()


def test_import_lists_each_format_with_what_it_gives(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        planner_options.parser().parse_args(["import", "--help"])
    shown = "".join(capsys.readouterr().out.split())
    for name, about in ALL.items():
        assert f"{name}{about}".replace(" ", "") in shown


@pytest.mark.parametrize("name", formats.LOADERS)
def test_each_format_has_its_loader(name: str) -> None:
    assert callable(resolve_name(formats.LOADERS[name][0]))
