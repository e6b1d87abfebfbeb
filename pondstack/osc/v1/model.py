"""openstack memory model ..."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from osc_lib import exceptions

from pondstack.osc.client import Document, MemoryClient
from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Column, Maybe, Rounded
from pondstack.prediction import latency_report, report

UNTOUCHED, LATENCY = "um", "li"

_LIST: base.Fields = {
    "Version": ("version", None),
    "Kind": ("kind", None),
    "State": ("state", None),
    "Created At": ("created_at", None),
    "Promoted At": ("promoted_at", Maybe),
    "UM Percent": ("untouched_percent", Rounded),
    "OP Percent": ("over_predictions_percent", Rounded),
    "Pool Percent": ("pool_percent", Rounded),
    "Mispredictions Percent": ("mispredictions_percent", Rounded),
    "Synthetic Labels": ("synthetic_labels", Maybe),
}


class Manifest(Column[Mapping[str, Any]]):
    """What a model's training noted, as pondstack-manage prints it."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        parts: tuple[Callable[[Mapping[str, Any]], str], ...] = (
            report.training,
            latency_report.training,
            report.labels,
            latency_report.origin,
            latency_report.predictor,
            lambda known: "\n".join(report.curve(known)),
            lambda known: "\n".join(latency_report.chosen(known)),
            report.choice,
            report.expected,
            report.verdict,
        )
        return "\n".join(text for text in (_said(part, self._value) for part in parts) if text)


class Serving(Column[Mapping[str, Any] | None]):
    """The points of Eq. 1 and the budget, as pondstack-manage prints them; `-` before the leader noted any."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return "\n".join(report.serving(self._value)) if self._value else "-"


_SHOW: base.Fields = {
    **_LIST,
    "SHA256": ("sha256", None),
    "Serving": ("serving", Serving),
    "Manifest": ("manifest", Manifest),
}


_CHANGED: base.Fields = {"Running": ("running", Maybe), "Former": ("former", Maybe)}


def _said(part: Callable[[Mapping[str, Any]], str], manifest: Mapping[str, Any]) -> str:
    """Return a part of the text; nothing of what this kind of model does not have."""
    try:
        return part(manifest)
    except KeyError:
        return ""


class ListModel(base.ListCommand):
    """List the prediction models, the newest first: which one serves, and what each did to the newest data"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        return base.table(self.client.list("models", limit=parsed_args.limit, marker=parsed_args.marker), _LIST)


class ShowModel(base.ShowCommand):
    """Show a prediction model: its curve, the chosen point, expected pool share and mispredictions"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the model."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "version", metavar="<version>", nargs="?", help="Version of the model (default: the one that runs)"
        )
        _add_kind(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        version = parsed_args.version or running(self.client, parsed_args.kind)["version"]
        return base.record(self.client.get("models", version), _SHOW)


class PromoteModel(base.ShowCommand):
    """Have a prediction model serve, whatever its verdict was"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the model."""
        parser = super().get_parser(prog_name)
        parser.add_argument("version", metavar="<version>", help="Version of the model")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return which one serves now, and which one did."""
        return base.record(self.client.post("models", parsed_args.version, "promote", body={}), _CHANGED)


class RollbackModel(base.ShowCommand):
    """Have the prediction model before the one that runs serve again; with none before, the static share"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the model that is to serve no more."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "version",
            metavar="<version>",
            nargs="?",
            help="Version that runs, and shall no more: nothing is done if another one does (default: what runs now)",
        )
        _add_kind(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return which one serves now, and which one did."""
        version = parsed_args.version or running(self.client, parsed_args.kind)["version"]
        return base.record(self.client.post("models", version, "rollback", body={}), _CHANGED)


def running(client: MemoryClient, kind: str | None = None) -> Document:
    """Return the model that runs, of any kind that of untouched memory first; CommandError where none does."""
    found = [model for model in client.list("models") if model["state"] == "running" and kind in (None, model["kind"])]
    if not found:
        what = f"of kind {kind} runs" if kind else "runs: the static share serves"
        raise exceptions.CommandError(f"no model {what}; `openstack memory model list` shows the candidates")
    return min(found, key=lambda model: model["kind"] != UNTOUCHED)


def _add_kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kind",
        metavar="<kind>",
        choices=(UNTOUCHED, LATENCY),
        help="Without a version: um (untouched memory) or li (latency sensitivity) (default: what runs, um first)",
    )
