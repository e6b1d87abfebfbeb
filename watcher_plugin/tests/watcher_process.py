"""Watcher's decision engine and applier in a process of their own: one request a line on stdin, one answer on stdout.

All is Watcher's own but its cluster model, which a request has, and Keystone: its user has a token as it is. It keeps
options, notifications and database globally, as Nova does, so no process of tests has both.

Run as a script: `watcher_process.py FOLDER URL`, a folder for its database and the address of the memory service.
"""

import json
import logging
import sqlite3
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from oslo_config import cfg
from watcher import objects
from watcher.applier.action_plan.default import DefaultActionPlanHandler
from watcher.applier.loading import default as applier_loading
from watcher.applier.workflow_engine.default import TaskFlowActionContainer
from watcher.common import config, context, rpc, utils
from watcher.db.sqlalchemy import migration
from watcher.decision_engine.audit.oneshot import OneShotAuditHandler
from watcher.decision_engine.model import element, model_root
from watcher.decision_engine.model.collector.nova import NovaClusterDataModelCollector
from watcher.decision_engine.sync import Syncer

CONFIG = """
[DEFAULT]
transport_url = fake:/
[database]
connection = sqlite:///{folder}/watcher.sqlite
[watcher_clients_auth]
auth_type = admin_token
endpoint = {url}
token = admin:ops
[memory_client]
poll_seconds = 0.02
decide_seconds = {seconds}
action_seconds = {seconds}
[watcher_applier]
rollback_when_actionplan_failed = true
"""
SECONDS = 60.0


def server_uuid(name: str) -> str:
    """Return the UUID of a server."""
    return str(uuid5(NAMESPACE_OID, name))


def model_of(nodes: list[dict[str, Any]]) -> model_root.ModelRoot:
    """Return a cluster: nodes {uuid, hostname, servers: {name: [vcpus, MiB]}, status, state} of 8 VCPUs and 16 GiB."""
    model = model_root.ModelRoot()
    for given in nodes:
        fixed = {"vcpus": 8, "vcpu_reserved": 0, "vcpu_ratio": 1.0, "disk": 100, "disk_gb_reserved": 0}
        fixed |= {"disk_ratio": 1.0, "memory": 16384, "memory_mb_reserved": 0, "memory_ratio": 1.0}
        fixed |= {"status": "enabled", "state": "up", "disabled_reason": None}
        node = element.ComputeNode(**fixed | {name: value for name, value in given.items() if name != "servers"})
        model.add_node(node)
        for name, (vcpus, mib) in given.get("servers", {}).items():
            instance = element.Instance(
                uuid=server_uuid(name),
                name=name,
                state="active",
                memory=mib,
                disk=1,
                vcpus=vcpus,
                metadata={},
                project_id=server_uuid("project"),
                host=given["hostname"],
                hypervisor_hostname=given["hostname"],
                created=datetime.now(UTC),
            )
            model.add_instance(instance)
            model.map_instance(instance, node)
    return model


class Errors(logging.Handler):
    """Keeps what Watcher logs as an error: that is where it says why an audit failed."""

    texts: list[str]

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.texts.append(record.getMessage())

    def taken(self) -> str:
        """Return what came since this was asked last."""
        told = " ".join(self.texts)
        self.texts.clear()
        return told


class Requests:
    """What tests ask for, by name."""

    def __init__(self, errors: Errors) -> None:
        self._errors = errors
        self._ctx = context.make_context(is_admin=True)
        self._running: dict[str, threading.Thread] = {}

    def audit(
        self, strategy: str, parameters: dict[str, Any], nodes: list[dict[str, Any]], scope: list[Any]
    ) -> dict[str, Any]:
        """Have a one-shot audit executed and scheduled; returns its state and its action plan."""
        model = model_of(nodes)
        NovaClusterDataModelCollector.get_latest_cluster_data_model = lambda _self: model
        row = objects.Strategy.get_by_name(self._ctx, strategy)
        audit = objects.Audit(
            self._ctx,
            uuid=utils.generate_uuid(),
            name=utils.generate_uuid(),
            audit_type="ONESHOT",
            goal_id=row.goal_id,
            strategy_id=row.id,
            parameters=parameters,
            scope=scope,
            state="PENDING",
            force=True,
        )
        audit.create()
        OneShotAuditHandler().execute(audit, self._ctx)
        audit = objects.Audit.get_by_uuid(self._ctx, audit.uuid)
        [*plans] = objects.ActionPlan.list(self._ctx, filters={"audit_uuid": audit.uuid})
        if not plans:
            return {"state": audit.state, "errors": self._errors.taken(), "action_plan": None}
        return {"state": audit.state, "action_plan": plans[0].uuid, **self.actions(plans[0].uuid)}

    def actions(self, action_plan: str) -> dict[str, Any]:
        """Return the state of an action plan, its efficacy and its actions."""
        plan = objects.ActionPlan.get_by_uuid(self._ctx, action_plan)
        found = objects.Action.list(self._ctx, filters={"action_plan_uuid": action_plan})
        indicators = objects.EfficacyIndicator.list(self._ctx, filters={"action_plan_id": plan.id})
        shown = ("uuid", "action_type", "input_parameters", "parents", "state", "status_message")
        return {
            "plan_state": plan.state,
            "errors": self._errors.taken(),
            "indicators": {item.name: float(item.value) for item in indicators},
            "global": {item["name"]: item["value"] for item in plan.global_efficacy},
            "actions": [{name: getattr(item, name) for name in shown} for item in found],
        }

    def run(self, action_plan: str) -> dict[str, Any]:
        """Have an action plan executed to its end."""
        DefaultActionPlanHandler(self._ctx, None, action_plan).execute()
        return self.actions(action_plan)

    def begin(self, action_plan: str) -> dict[str, Any]:
        """Have one executed in the background."""
        self._running[action_plan] = threading.Thread(target=self.run, args=(action_plan,), daemon=True)
        self._running[action_plan].start()
        return {}

    def cancel(self, action_plan: str) -> dict[str, Any]:
        """Cancel one that is executed, as Watcher's API does."""
        plan = objects.ActionPlan.get_by_uuid(self._ctx, action_plan, eager=True)
        plan.state = objects.action_plan.State.CANCELLING
        plan.save()
        return {}

    def end(self, action_plan: str) -> dict[str, Any]:
        """Wait for the end of one."""
        self._running[action_plan].join(SECONDS)
        assert not self._running[action_plan].is_alive()
        return self.actions(action_plan)

    def revert(self, action_plan: str, abort: bool) -> dict[str, Any]:
        """Have the action without parents reverted, or aborted, by the container that the engine has for it."""
        plan = objects.ActionPlan.get_by_uuid(self._ctx, action_plan, eager=True)
        plan.state = objects.action_plan.State.CANCELLING if abort else objects.action_plan.State.ONGOING
        plan.save()
        actions = objects.Action.list(self._ctx, filters={"action_plan_uuid": action_plan}, eager=True)
        [action] = [item for item in actions if not item.parents]
        if abort:
            action.state = objects.action.State.ONGOING
            action.save()
        engine = applier_loading.DefaultWorkFlowEngineLoader().load("taskflow", context=self._ctx)
        TaskFlowActionContainer(action, engine).revert()
        return self.actions(action_plan)


def main(folder: str, url: str) -> None:
    """Answer until stdin ends; `ready` first."""
    answers, sys.stdout = sys.stdout, sys.stderr
    logging.disable(logging.WARNING)
    file = Path(folder, "watcher.conf")
    file.write_text(CONFIG.format(folder=folder, url=url, seconds=SECONDS))
    with sqlite3.connect(Path(folder, "watcher.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    config.parse_args([], default_config_files=[str(file)])
    rpc.init(cfg.CONF)
    objects.register_all()
    migration.create_schema()
    Syncer().sync()
    errors = Errors()
    logging.getLogger().addHandler(errors)
    requests = Requests(errors)
    print('"ready"', file=answers, flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            told = {"answer": getattr(requests, name)(**arguments)}
        except Exception as error:  # noqa: BLE001 - the test raises it
            told = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
