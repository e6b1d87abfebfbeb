"""The directive `program-options NAME`: commands and options of one of our programs, as its parser has them.

What a page of doc/source/cli says of options is written nowhere else than in the program.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

PARSERS = Path(__file__).with_name("program_parsers.py")


@cache
def parsers() -> dict[str, list[dict[str, Any]]]:
    """Return the commands of each program, from a process of its own; raises CalledProcessError."""
    done = subprocess.run([sys.executable, "-W", "ignore", str(PARSERS)], stdout=subprocess.PIPE, check=True)
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


class ProgramOptions(Directive):
    """A list of definitions: each command, and below it each of its options."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the list; a program that is unknown, or has no parser, is an error of the page."""
        name = self.arguments[0]
        commands = parsers().get(name)
        if not commands:
            raise self.error(f"{name} is no program of setup.cfg with a parser")
        own, *others = commands
        found: list[nodes.Node] = [_options(own["options"])] if own["options"] else []
        shown = [command for command in others if command["options"] or command["help"]]
        if shown:
            found.append(_definitions([(command["name"], _about(command)) for command in shown]))
        return found


def _about(command: dict[str, Any]) -> list[nodes.Node]:
    about: list[nodes.Node] = [nodes.paragraph(text=command["help"])] if command["help"] else []
    return [*about, _options(command["options"])] if command["options"] else about


def _options(options: list[tuple[str, str]]) -> nodes.Node:
    return _definitions([(written, [nodes.paragraph(text=text)]) for written, text in options])


def _definitions(items: list[tuple[str, list[nodes.Node]]]) -> nodes.Node:
    found = nodes.definition_list()
    for term, about in items:
        words = nodes.term("", "", nodes.literal(text=term))
        found += nodes.definition_list_item("", words, nodes.definition("", *about))
    return found
