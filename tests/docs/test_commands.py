"""Each `openstack memory ...` of a page is a command whose arguments its parser takes.

In a block every argument has to be there, and in a sentence as soon as it has one that is no placeholder: readers copy
both. A sentence may also just name a command. Placeholders stand for a value. What the commands do is tested beside the
command line.
"""

import argparse
import configparser
import importlib
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "doc" / "source"
BLOCK = re.compile(r"^(?: {4,}|\$ )?(?:\$ )?openstack (memory .*?)(?: +#.*)?$", re.MULTILINE)
SENTENCE = re.compile(r"`openstack\s+(memory\s[^`]*)`")
OPTIONAL = re.compile(r"\[[^\]]*\]")
"""What may be left out, as the table of all commands writes it."""


def commands() -> dict[str, str]:
    """Return where each command is, as setup.cfg declares them."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    declared = parser["options.entry_points"]["openstack.memory.v1"].strip().splitlines()
    return {
        name.strip().replace("_", " "): place.strip() for name, _, place in (line.partition("=") for line in declared)
    }


def _whole(text: str) -> str:
    """Return a page with the lines joined that a backslash continues."""
    return re.sub(r"\\\n\s*", "", text)


def found(text: str) -> set[tuple[str, bool]]:
    """Return the commands of a page, and whether each is in a block; `on|off`: the first one is tried."""
    named = {(" ".join(line.split()), True) for line in BLOCK.findall(_whole(text))}
    named |= {(" ".join(line.split()), False) for line in SENTENCE.findall(text)}
    return {(re.sub(r"(\w+)(\|\w+)+", r"\1", OPTIONAL.sub("", line)).strip(), block) for line, block in named}


def refusal(line: str, in_block: bool) -> str:
    """Return why a command is none, "" where its parser takes it."""
    known = commands()
    name = max((name for name in known if f"{line} ".startswith(f"{name} ")), key=len, default="")
    if not name:
        return "" if any(f"{name} ".startswith(f"{line.removesuffix('...').strip()} ") for name in known) else "unknown"
    given = line.removeprefix(name)
    if not (in_block or re.sub(r"<[^>]*>", "", given).strip()):
        return ""
    words = shlex.split(re.sub(r"<[^>]*>", "1", given))
    module, _, factory = known[name].partition(":")
    command = getattr(importlib.import_module(module), factory)(argparse.Namespace(), None)
    parser = command.get_parser(name)
    try:
        parser.parse_args(words)
    except SystemExit:
        return parser.format_usage()
    return ""


PAGES = sorted(path for path in DOC.rglob("*.md") if found(path.read_text()))


def test_the_pages_have_commands() -> None:
    assert len(PAGES) > 15
    assert len(found((DOC / "admin" / "maintenance.md").read_text())) > 15


@pytest.mark.parametrize("page", [str(path.relative_to(DOC)) for path in PAGES])
def test_each_command_of_a_page_exists(page: str) -> None:
    wrong = {line: why for line, block in found((DOC / page).read_text()) if (why := refusal(line, block))}
    assert wrong == {}


def test_what_is_no_command_is_found() -> None:
    assert refusal("memory slice list --state quarantined", False)
    assert refusal("memory slice list", True)
    assert refusal("memory poll list", True)
    assert not refusal("memory slice list", False)
    assert not refusal("memory slice list <pool> --state quarantined", False)
