"""Each program that is installed has a man page, whose options are those of the program."""

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLI = ROOT / "doc" / "source" / "cli"
SECTIONS = {"Synopsis", "Description", "Options", "Exit status", "See also"}
BY_HAND = {
    "pondstack-data-plane": ("rdma/native/control/main.c", r'strcmp\(arguments\[1\], "([\w-]+)"\)'),
    "pondstack-qemu": ("agent/pondstack_agent/qemu/wrapper.py", r'"(--[\w-]+)"'),
}
"""Programs without a parser: their source, and how it compares an option or a command."""


def programs() -> list[str]:
    """Return what setup.cfg installs; a native program has an entry of its name, which becomes it."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options.entry_points"]["console_scripts"].strip().splitlines()
    return sorted(line.partition("=")[0].strip() for line in lines)


def page(program: str) -> str:
    """Return its page."""
    return (CLI / f"{program}.md").read_text()


def test_each_program_has_a_page_and_no_page_is_of_another() -> None:
    assert [path.stem for path in sorted(CLI.glob("pondstack-*.md"))] == programs()
    native = re.findall(r'Program\(\s*"([\w-]+)"', (ROOT / "setup.py").read_text())
    assert native
    assert set(native) <= set(programs())


@pytest.mark.parametrize("program", programs())
def test_a_page_has_what_a_man_page_has(program: str) -> None:
    text = page(program)
    assert re.match(rf"# {program}: [a-z].*\n", text)
    assert set(re.findall(r"^## (.+)$", text, re.MULTILINE)) >= SECTIONS


@pytest.mark.parametrize("program", programs())
def test_options_are_read_from_the_program_or_are_all_there(program: str) -> None:
    """`make docs` fails where a program named in the directive has no parser."""
    options = page(program).split("## Options")[1].split("\n## ")[0]
    if program not in BY_HAND:
        assert f"```{{program-options}} {program}\n```" in options
        return
    source, pattern = BY_HAND[program]
    named = set(re.findall(pattern, (ROOT / source).read_text()))
    assert len(named) > 2
    assert named == set(re.findall(r"^`([\w-]+)`.*\n: ", options, re.MULTILINE))


def test_programs_that_a_page_refers_to_exist() -> None:
    named = {name for program in programs() for name in re.findall(r"\*\*(pondstack[\w-]+)\*\*\(1\)", page(program))}
    assert named <= set(programs())
