"""What the commands share: the client, the options of a list, how an object becomes rows."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from osc_lib.cli import parseractions
from osc_lib.command import command

from pondstack.domain.printable import escaped
from pondstack.osc.client import MemoryClient
from pondstack.osc.v1.columns import Text

Fields = Mapping[str, tuple[str, Callable[[Any], Any] | None]]
"""Column title to (key of the API's document, column class or None)."""


class WithClient(command.Command):
    """A command that calls the service."""

    @property
    def manager(self) -> Any:
        """The clients of all services: OpenStackClient hangs each plugin's client onto its manager."""
        return self.app.client_manager

    @property
    def client(self) -> MemoryClient:
        """The client of the memory service."""
        client: MemoryClient = self.manager.memory
        return client


class ListCommand(WithClient, command.Lister):
    """A command that lists; every page is fetched unless --limit says otherwise."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add --limit and --marker."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--limit",
            metavar="<count>",
            type=int,
            action=parseractions.NonNegativeAction,
            help="Show at most this many objects (default: all)",
        )
        parser.add_argument("--marker", metavar="<key>", help="Show the objects after this one")
        return parser


class ShowCommand(WithClient, command.ShowOne):
    """A command that shows one object."""


class Command(WithClient, command.Command):
    """A command that shows nothing when it succeeds."""


def row(document: Mapping[str, Any], fields: Fields) -> tuple[Any, ...]:
    """Return an object as a row of `fields`; what the API left out is None."""
    return tuple(_cell(document.get(key), column) for key, column in fields.values())


def table(documents: Any, fields: Fields) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return what a Lister returns."""
    return tuple(fields), [row(document, fields) for document in documents]


def record(document: Mapping[str, Any], fields: Fields) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return what a ShowOne returns; the titles are the API's keys."""
    return tuple(key for key, _ in fields.values()), row(document, fields)


def _cell(value: Any, column: Callable[[Any], Any] | None) -> Any:
    if column is None:
        return Text(value) if isinstance(value, str) and value != escaped(value) else value
    return column(value)
