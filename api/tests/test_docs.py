"""The pages of the documentation know every error code and every command."""

import argparse
import re
from importlib import metadata
from pathlib import Path

import pytest
from osc_lib.command import command

from pondstack.conf import opts
from pondstack.domain.errors import PondError
from pondstack.osc import plugin
from pondstack_api import errors

DOC = Path(__file__).resolve().parents[2] / "doc" / "source"


def _tree(error):
    return {error} | {leaf for child in error.__subclasses__() for leaf in _tree(child)}


def documented_errors():
    """Return {code: status} of the table in errors.md."""
    rows = re.findall(
        r"^\| `(pondstack\.\w+)` \| (\d+) \| .+ \| .+ \|$", (DOC / "reference" / "errors.md").read_text(), re.MULTILINE
    )
    assert len(rows) == len(dict(rows)), "a code is there twice"
    return {code: int(status) for code, status in rows}


def test_every_error_code_is_documented_and_no_other():
    modules = ("pondstack.domain.errors", errors.__name__)
    real = {error.code: error.status for error in _tree(PondError) if error.__module__ in modules}
    assert documented_errors() == real


def test_no_code_is_in_the_sources_only():
    root = DOC.parents[1]
    used = {
        code
        for folder in ("pondstack/domain", "api/pondstack_api")
        for file in (root / folder).rglob("*.py")
        for code in re.findall(r'code = "(pondstack\.\w+)"', file.read_text())
    }
    assert used == set(documented_errors())


def commands():
    """Yield (command line, class) of each command."""
    for entry in metadata.entry_points(group="openstack.memory.v1"):
        yield entry.name.replace("_", " "), entry.load()


def test_every_command_is_documented_and_no_other():
    text = (DOC / "reference" / "cli.md").read_text()
    rows = re.findall(r"^\| `openstack (memory(?: [a-z]+)+)", text, re.MULTILINE)
    assert sorted(rows) == sorted(name for name, _ in commands())


class PlainLister(command.Lister):
    """A list with nothing of its own."""

    def take_action(self, parsed_args):
        """Never run."""


class PlainShowOne(command.ShowOne):
    """An object with nothing of its own."""

    def take_action(self, parsed_args):
        """Never run."""


def actions(cls):
    """Return the actions of a command's parser by their first option, or by their name."""
    parser = cls(argparse.Namespace(), None).get_parser("openstack")
    return {(action.option_strings or [action.dest])[0]: action for action in parser._actions}


@pytest.mark.parametrize(("name", "cls"), list(commands()), ids=lambda value: str(value))
def test_every_option_is_documented_and_helped(name, cls):
    text = (DOC / "reference" / "cli.md").read_text()
    plain = actions(PlainLister if issubclass(cls, command.Lister) else PlainShowOne)
    for option, action in actions(cls).items():
        if option in plain:
            continue
        assert action.help, f"{name}: {option}"
        if option.startswith("-"):
            assert re.search(rf"^\|.*`{option}[ `]", text, re.MULTILINE), f"{name}: {option}"


def test_the_version_option_is_documented():
    parser = plugin.build_option_parser(argparse.ArgumentParser())
    assert "--os-memory-api-version" in parser.format_help()
    assert f"(default {plugin.DEFAULT_API_VERSION};" in (DOC / "reference" / "cli.md").read_text()
    assert plugin.DEFAULT_API_VERSION in plugin.API_VERSIONS


def test_every_option_that_the_pages_name_exists():
    names = {
        (str(getattr(group, "name", group)), option.dest) for group, options in opts.list_opts() for option in options
    }
    for page in ("api.md", "errors.md", "cli.md"):
        for group, option in re.findall(
            r"`\[(api|database|controller)\] (\w+)`", (DOC / "reference" / page).read_text()
        ):
            assert (group, option) in names, f"{page}: [{group}] {option}"
