"""The runbooks of doc/source/admin/maintenance.md: each `openstack memory` line is a command with options that exist.

What the commands do, and what refuses them, is tested in tests/functional/test_removal.py and beside the command line.
"""

import argparse
import configparser
import importlib
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "source" / "admin" / "maintenance.md"
LINES = re.findall(r"^ {4,}openstack (memory .*?)(?: +#.*)?$", PAGE.read_text(), re.MULTILINE)


def commands() -> dict[str, str]:
    """Return where each command is, as setup.cfg declares them."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    declared = parser["options.entry_points"]["openstack.memory.v1"].strip().splitlines()
    return {
        name.strip().replace("_", " "): place.strip() for name, _, place in (line.partition("=") for line in declared)
    }


def test_the_runbooks_have_commands() -> None:
    for title in ("Return all pool memory of a host", "Remove a compute host", "Replace a pool device"):
        (part,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        assert "openstack memory" in part
    assert len(LINES) > 15


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_a_runbook_exists(line: str) -> None:
    known = commands()
    name = max((name for name in known if f"{line} ".startswith(f"{name} ")), key=len, default="")
    assert name, f"there is no such command: {line}"
    module, _, factory = known[name].partition(":")
    command = getattr(importlib.import_module(module), factory)(argparse.Namespace(), None)
    # Placeholders stand for a value; an unknown option or one too few ends the parser.
    words = shlex.split(re.sub(r"<[^>]*>", "1", line.removeprefix(name)))
    command.get_parser(name).parse_args(words)
