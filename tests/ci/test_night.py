"""`make night`: each part runs, whatever came of the one before, and all of them tell their time."""

import sys

import pytest

from tests.ci.night import Part, main, parts, run

pytestmark = pytest.mark.unit


def python(program: str, **environment: str) -> Part:
    """Return a part that runs a program."""
    return Part([sys.executable, "-c", program], environment)


def test_a_part_that_fails_keeps_no_other_one_from_running(capfd: pytest.CaptureFixture[str]) -> None:
    shown = python("import os; print('sees', os.environ['NIGHT'])", NIGHT="1")
    assert run({"tests": python("raise SystemExit(3)"), "mutants": shown}) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "sees 1" in lines
    assert [line.split()[0] for line in lines[-3:]] == ["tests", "mutants", "night"]
    assert [line.partition("  ")[2].split(maxsplit=1)[1] for line in lines[-3:]] == [
        "NOT GOOD: exit 3",
        "good",
        "NOT GOOD",
    ]


def test_all_good() -> None:
    assert run({"tests": python(""), "stalls": python("")}) == 0


def test_only_the_tests_have_new_seeds_and_those_of_the_night() -> None:
    found = parts("2", ["-k", "lease"])
    assert found["tests"].environment == {"NIGHT": "1", "PONDSTACK_SEED": "random"}
    assert not found["stalls"].environment
    assert found["tests"].command[-2:] == ["-k", "lease"]
    assert [found[name].command[-1] for name in ("stalls", "mutants")] == ["stalls", "mutants"]


def test_a_part_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--parts", "stalls,dreams"])
    assert "choose of tests, stalls, mutants" in capsys.readouterr().err
