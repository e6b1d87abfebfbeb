"""Prints the options of pondstack's programs as JSON, as their parsers have them: what pages of doc/source/cli show.

Each program's main() is called as its command would, and stopped where it parses: in this process, which ends then.
"""

import argparse
import json
import sys
from importlib import import_module, metadata
from typing import Any
from unittest import mock

NATIVE = "pondstack_rdma.data_plane:main"
"""Becomes another program."""


class Parsed(BaseException):
    """The parser of a program, instead of what it would have made of its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__(parser.prog)
        self.parser = parser


def programs() -> dict[str, str]:
    """Return the programs that are installed, and their functions as MODULE:NAME."""
    installed = metadata.distribution("pondstack").entry_points.select(group="console_scripts")
    return {found.name: found.value for found in installed}


def parser_of(name: str, function: str) -> argparse.ArgumentParser | None:
    """Return a program's parser; None where it has none, as it reads its arguments by itself."""

    def parsed(self: argparse.ArgumentParser, *_arguments: Any, **_others: Any) -> None:
        raise Parsed(self)

    module, _, called = function.partition(":")
    with mock.patch.object(argparse.ArgumentParser, "parse_args", parsed), mock.patch.object(sys, "argv", [name]):
        try:
            getattr(import_module(module), called)()
        except Parsed as found:
            return found.parser
        except SystemExit:
            return None
    return None


def commands(parser: argparse.ArgumentParser, name: str) -> list[dict[str, Any]]:
    """Return a parser and its sub-commands: {"name", "help", "options"}, options as [how it is written, help]."""
    found: list[dict[str, Any]] = [{"name": name, "help": "", "options": []}]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for verb, inner in action.choices.items():
                deeper = commands(inner, f"{name} {verb}")
                deeper[0]["help"] = said.get(verb, "")
                found += deeper
        elif not isinstance(action, argparse._HelpAction):
            found[0]["options"].append([_written(action), _help(parser, action)])
    return found


def _written(action: argparse.Action) -> str:
    values = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else str(action.metavar or action.dest)
    if not action.option_strings:
        return values
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {values if action.metavar or action.choices else values.upper()}"


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return " ".join(text.split())


def main() -> None:
    """Print {program: its commands}; [] for a program without a parser."""
    shown = {}
    for name, function in programs().items():
        parser = None if function == NATIVE else parser_of(name, function)
        shown[name] = commands(parser, name) if parser else []
    json.dump(shown, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
