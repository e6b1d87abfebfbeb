"""openstack memory plan ..., host drain and restore."""

import argparse
from typing import Any
from uuid import uuid4

from pondstack.osc.client import Document
from pondstack.osc.v1 import base
from pondstack.osc.v1.columns import Maybe, Names
from pondstack.osc.v1.progress import Progress

DECIDE_SECONDS = 300
"""How long `plan create` follows a plan until it is decided."""
WAIT_SECONDS = 3600
"""How long --wait follows a plan, unless --timeout says otherwise: it may be many live migrations."""
ENDED = ("done", "failed", "cancelled")
CHOICES = {
    "underload": ["static", "average", "lifetime"],
    "overload": ["static", "mad", "iqr", "local-regression"],
    "selection": ["least-memory", "least-load", "random", "longest-lifetime"],
    "placement": ["best-fit", "worst-fit", "lifetime"],
    "afterwards": ["keep", "lend", "suspend"],
}
NUMBERS = {
    "underload_percent": float,
    "overload_percent": float,
    "most_migrations": int,
    "most_emptied": int,
    "least_awake": int,
}
_LIST: base.Fields = {
    "UUID": ("uuid", None),
    "Kind": ("kind", None),
    "State": ("state", None),
    "Host": ("host", Maybe),
    "Hosts Emptied": ("hosts_emptied", None),
    "Migrations": ("migrations", None),
    "GiB Moved": ("gib_moved", None),
    "Gained MiB": ("gained_mib", None),
    "Estimated Watts": ("estimated_watts", Maybe),
    "Reason": ("reason", Maybe),
    "Created At": ("created_at", None),
}
_SHOW: base.Fields = {
    **_LIST,
    "Trigger": ("trigger", None),
    "Afterwards": ("afterwards", None),
    "Hosts Woken": ("hosts_woken", None),
    "Power Profile": ("power_profile", Maybe),
    "Worst Load Percent": ("worst_load_percent", None),
    "Whole Memory": ("whole_memory", None),
    "Overloaded Left": ("overloaded_left", None),
    "Inputs": ("inputs_text", Maybe),
    "Settings": ("settings_text", Maybe),
    "Actions": ("actions_text", Names),
    "Left Out": ("left_out_text", Names),
    "Decided At": ("decided_at", Maybe),
    "Ended At": ("ended_at", Maybe),
}


def flat(plan: Document) -> Document:
    """Return a plan with what it is expected to bring beside its other fields, and its lists as text."""
    effect = plan["effect"]
    watts = effect["saved_watts"]
    return {
        **plan,
        **effect,
        "gib_moved": round(effect["moved_mib"] / 1024, 1),
        "estimated_watts": None if watts is None else round(watts, 1),
        "inputs_text": _pairs(plan["inputs"]),
        "settings_text": _pairs(plan["settings"]),
        "actions_text": [_text(action) for action in plan.get("actions", [])],
        "left_out_text": [f"{name}: {reason}" for name, reason in sorted(plan["left_out"].items())],
    }


def _pairs(values: Document) -> str | None:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or None


def _text(action: Document) -> str:
    what = f"{action['number']} {action['kind']} {action['server_uuid'] or action['host']}"
    if action["kind"] == "live-migrate":
        what += f" from {action['host']} to {action['destination'] or 'where Nova finds room'}"
    reason = f" ({action['reason']})" if action["reason"] else ""
    return f"{what}: {action['state']}{reason}"


class ListPlan(base.ListCommand):
    """List consolidation plans, the newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the filter."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--state", metavar="<state>", help="Only plans in this state, such as proposed or running")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the rows."""
        args = parsed_args
        found = self.client.list("plans", state=args.state, limit=args.limit, marker=args.marker)
        return base.table([flat(plan) for plan in found], _LIST)


class _ShowPlan(base.ShowCommand):
    def _show(self, plan: Document) -> Any:
        return base.record(flat(plan), _SHOW)


class CreatePlan(_ShowPlan):
    """Have a plan decided that empties idle hosts and relieves overloaded ones; nothing moves until it is applied"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the settings."""
        parser = super().get_parser(prog_name)
        for name, choices in CHOICES.items():
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(option, choices=choices, help=f"In place of [consolidation] {name}")
        for name, kind in NUMBERS.items():
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(option, metavar="<number>", type=kind, help=f"In place of [consolidation] {name}")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the plan as it was decided."""
        given = {name: getattr(parsed_args, name) for name in (*CHOICES, *NUMBERS)}
        body: Document = {name: value for name, value in given.items() if value is not None}
        told = self.client.post("plans", body=body | {"operation_id": str(uuid4())})
        return self._show(PlanProgress(self.client, told).decided(DECIDE_SECONDS))


class _OnePlan(_ShowPlan):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the plan."""
        parser = super().get_parser(prog_name)
        parser.add_argument("plan", metavar="<plan>", help="UUID of the plan")
        return parser


class ShowPlan(_OnePlan):
    """Show a plan: its actions, what it is expected to bring, what it was decided from, and who takes no part"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the fields."""
        return self._show(self.client.get("plans", parsed_args.plan))


def add_wait(parser: argparse.ArgumentParser) -> None:
    """Add --wait and --timeout."""
    parser.add_argument("--wait", action="store_true", help="Follow it until it has ended; exits 1 where it failed")
    parser.add_argument(
        "--timeout",
        metavar="<seconds>",
        type=float,
        default=WAIT_SECONDS,
        help=f"Seconds after which --wait gives up; the plan goes on (default {WAIT_SECONDS})",
    )


class ApplyPlan(_OnePlan):
    """Have a proposed plan carried out"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add --wait."""
        parser = super().get_parser(prog_name)
        add_wait(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the plan: as it began, or with --wait as it ended."""
        told = self.client.post("plans", parsed_args.plan, "apply", body={"operation_id": str(uuid4())})
        if parsed_args.wait:
            told = PlanProgress(self.client, told).follow(parsed_args.timeout, "done")
        return self._show(told)


class CancelPlan(_OnePlan):
    """Put an end to a plan; hosts that it disabled are enabled again, servers that moved stay where they are"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add --wait."""
        parser = super().get_parser(prog_name)
        add_wait(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the plan: as it is, or with --wait as it ended."""
        told = self.client.post("plans", parsed_args.plan, "cancel", body={"operation_id": str(uuid4())})
        if parsed_args.wait:
            told = PlanProgress(self.client, told).follow(parsed_args.timeout, "cancelled")
        return self._show(told)


class _HostPlan(_ShowPlan):
    verb = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the host and --wait."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Name of the host (Nova's hypervisor hostname)")
        add_wait(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the plan: as it began, or with --wait as it ended."""
        told = self.client.post("hosts", parsed_args.host, self.verb, body={"operation_id": str(uuid4())})
        if parsed_args.wait:
            told = PlanProgress(self.client, told).follow(parsed_args.timeout, "done")
        return self._show(told)


class DrainHost(_HostPlan):
    """Disable a host in Nova and move its servers away by live migration; `plan cancel` takes it back"""

    verb = "drain"


class RestoreHost(_HostPlan):
    """Enable a host in Nova that was drained"""

    verb = "restore"


class PlanProgress(Progress):
    """A plan that goes on."""

    @property
    def name(self) -> str:
        """Its UUID."""
        return f"plan {self.told['uuid']}"

    @property
    def command(self) -> str:
        """That shows it."""
        return f"plan show {self.told['uuid']}"

    def ask(self) -> Document:
        """Ask for the plan."""
        return self.client.get("plans", self.told["uuid"])

    def text(self) -> str:
        """Return its state, and how many of its actions have ended."""
        told = self.told
        actions = told.get("actions", [])
        settled = sum(action["state"] not in ("pending", "running") for action in actions)
        reason = f": {told['reason']}" if told["reason"] else ""
        return f"{told['state']}, {settled} of {len(actions)} actions have ended{reason}"

    def decided(self, timeout_seconds: float) -> Document:
        """Return it when it is decided; raises CommandError where that fails, or is not done in time."""
        told = self.until(lambda told: told["state"] != "deciding", timeout_seconds)
        return self.check(told["state"] not in ("failed", "cancelled"))

    def follow(self, timeout_seconds: float, wanted: str) -> Document:
        """Return it when it has ended; raises CommandError where it ended otherwise than wanted, or not in time."""
        return self.check(self.until(lambda told: told["state"] in ENDED, timeout_seconds)["state"] == wanted)
