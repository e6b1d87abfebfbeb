"""openstack memory planner ...: jobs of the planner, which replay a cloud's history beside the leading controller."""

import argparse
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from osc_lib import exceptions

from pondstack.osc.client import Document
from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe
from pondstack.osc.v1.progress import Progress

WAIT_SECONDS = 6 * 3600
"""How long --wait follows a job, unless --timeout says otherwise."""
ENDED = ("ended", "failed", "cancelled")
PATH = "planner-jobs"
NUMBERS = {
    "window_days": (float, "How far back the history of the cloud goes, in days (default 30)"),
    "sockets_per_host": (int, "CPU sockets of each host of the cloud (default 2)"),
    "servers": (int, "Servers to generate (default 20000)"),
    "days": (int, "Days to generate (default 14)"),
    "trace_seed": (int, "Seed of what is generated (default 1)"),
}
_LIST: base.Fields = {
    "UUID": ("uuid", None),
    "Source": ("source", None),
    "State": ("state", None),
    "Progress": ("progress", None),
    "Reason": ("reason", Maybe),
    "Created At": ("created_at", None),
    "Ended At": ("ended_at", Maybe),
}
_SHOW: base.Fields = {
    **_LIST,
    "Order": ("order_text", None),
    "User": ("user_id", Maybe),
    "Project": ("project_id", Maybe),
    "Tries": ("tries", None),
    "Controller": ("controller", Maybe),
    "Begun At": ("begun_at", Maybe),
    "Summary": ("summary", Maybe),
}


def flat(job: Document) -> Document:
    """Return a job with its progress and its order as text."""
    order = job["order"]
    settings = [f"{name}={_text(value)}" for name, value in order.get("settings", {}).items()]
    others = [f"{name}={value}" for name, value in order.items() if name not in ("settings", "source")]
    source = order.get("source", "")
    return {
        **job,
        "source": f"{source} (SYNTHETIC)" if job["synthetic"] else source,
        "progress": _progress(job),
        "order_text": ", ".join([*others, *settings]),
    }


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _progress(job: Document) -> str:
    return f"{job['done']} of {job['total']} parts" if job["total"] else "-"


def setting(text: str) -> tuple[str, Any]:
    """Return a setting of the command line, NAME=VALUE or NAME=VALUE,...; raises ArgumentTypeError."""
    name, sign, given = text.partition("=")
    values = [_value(part) for part in given.split(",") if part]
    if not name or not sign or not values:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE, such as seeds=1,2,3")
    return name.replace("-", "_"), values if name.replace("-", "_") in SEVERAL or len(values) > 1 else values[0]


SEVERAL = ("seeds", "pool_sockets", "policies", "topologies", "pool_shares", "overcommit_ratios")
"""Settings that take several values."""


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class ListJob(base.ListCommand):
    """List jobs of the planner, the newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filter."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--state", metavar="<state>", help="Only jobs in this state, such as running or ended")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        args = parsed_args
        found = self.client.list(PATH, state=args.state, limit=args.limit, marker=args.marker)
        return base.table([flat(job) for job in found], _LIST)


class RunJob(base.ShowCommand):
    """Have the controllers replay a history, and answer what pooling memory would save; one job runs at a time"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what is replayed, the settings, and --wait."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--source",
            choices=["cloud", "generated"],
            default="cloud",
            help="What is replayed: this cloud's own history (default), or the synthetic trace that ships",
        )
        for name, (kind, text) in NUMBERS.items():
            parser.add_argument(f"--{name.replace('_', '-')}", metavar="<number>", type=kind, help=text)
        parser.add_argument(
            "--set",
            metavar="<name>=<value>",
            dest="settings",
            action="append",
            type=setting,
            default=[],
            help="A setting of the planner, with commas between several values; repeat it for more. "
            "`pondstack-planner run --help` lists them",
        )
        parser.add_argument("--wait", action="store_true", help="Follow it until it has ended; exits 1 where it failed")
        parser.add_argument(
            "--timeout",
            metavar="<seconds>",
            type=float,
            default=WAIT_SECONDS,
            help=f"Seconds after which --wait gives up; the job goes on (default {WAIT_SECONDS})",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the job: as it was queued, or with --wait as it ended."""
        args = parsed_args
        given = {name: getattr(args, name) for name in NUMBERS}
        body: Document = {name: value for name, value in given.items() if value is not None}
        body |= {"source": args.source, "operation_id": str(uuid4())}
        if args.settings:
            body["settings"] = dict(args.settings)
        told = self.client.post(PATH, body=body)
        if args.wait:
            told = JobProgress(self.client, told).follow(args.timeout)
        return base.record(flat(told), _SHOW)


class ShowJob(base.ShowCommand):
    """Show a job of the planner: its progress, and its summary once it has ended"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the job."""
        return _with_job(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return base.record(flat(self.client.get(PATH, parsed_args.job)), _SHOW)


class CancelJob(base.ShowCommand):
    """Put an end to a job of the planner; what it has done by then is not kept"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the job."""
        return _with_job(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the job."""
        told = self.client.post(PATH, parsed_args.job, "cancel", body={"operation_id": str(uuid4())})
        return base.record(flat(told), _SHOW)


class DeleteJob(base.Command):
    """Delete a job of the planner that has ended, and its report"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the job."""
        return _with_job(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete it."""
        self.client.delete(PATH, parsed_args.job)


class ReportJob(base.Command):
    """Write the report of a job of the planner that has ended: a page of HTML, all answers as JSON, or both"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the job and the files."""
        parser = _with_job(super().get_parser(prog_name))
        parser.add_argument("--html", metavar="<file>", type=Path, help="Write the page there")
        parser.add_argument("--json", metavar="<file>", type=Path, help="Write the answers there")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write the files, each whole or not at all."""
        args = parsed_args
        if args.html is None and args.json is None:
            raise exceptions.CommandError("give --html, --json, or both: the file to write")
        found = self.client.get(PATH, args.job, "report")
        texts = {args.html: found["html"], args.json: f"{json.dumps(found['answers'], indent=1)}\n"}
        try:
            for path, text in ((path, text) for path, text in texts.items() if path is not None):
                new = path.with_name(f"{path.name}.new")
                new.write_text(text)
                new.replace(path)
        except OSError as error:
            raise exceptions.CommandError(str(error)) from error


def _with_job(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("job", metavar="<job>", help="UUID of the job")
    return parser


class JobProgress(Progress):
    """A job that goes on."""

    @property
    def name(self) -> str:
        """Its UUID."""
        return f"planner job {self.told['uuid']}"

    @property
    def command(self) -> str:
        """That shows it."""
        return f"planner show {self.told['uuid']}"

    def ask(self) -> Document:
        """Ask for the job."""
        return self.client.get(PATH, self.told["uuid"])

    def text(self) -> str:
        """Return its state, and how many of its parts have ended."""
        told = self.told
        progress = f", {_progress(told)}" if told["total"] else ""
        reason = f": {told['reason']}" if told["reason"] else ""
        return f"{told['state']}{progress}{reason}"

    def follow(self, timeout_seconds: float) -> Document:
        """Return it when it has ended; raises CommandError where it failed, was cancelled, or did not end in time."""
        return self.check(self.until(lambda told: told["state"] in ENDED, timeout_seconds)["state"] == "ended")
