"""Client of the controllers. Every method that changes something takes an operation id and is idempotent by it.

The client repeats a call, with the same operation id, while no controller leads (pondstack.rpc.retry). A caller that
got no answer in time repeats it with the same operation id too.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import oslo_messaging

from pondstack.domain.requests import AssignRequest
from pondstack.rpc import targets
from pondstack.rpc.controller_host_api import ControllerHostAPI
from pondstack.rpc.controller_lending_api import ControllerLendingAPI
from pondstack.rpc.controller_mitigation_api import ControllerMitigationAPI
from pondstack.rpc.controller_plan_api import PLAN_VERSION, ControllerPlanAPI
from pondstack.rpc.controller_planner_api import ControllerPlannerAPI
from pondstack.rpc.controller_qos_api import ControllerQosAPI
from pondstack.rpc.controller_sleep_api import ControllerSleepAPI
from pondstack.rpc.former import does_not_know
from pondstack.rpc.node_api import MIGRATIONS_VERSION
from pondstack.rpc.retry import RetryingCaller, RetryPolicy
from pondstack.rpc.transport import Bus
from pondstack.rpc.wire import Grant, HostReading, Report, Sample, Snapshot, SplitView, UsedSplit, to_arguments

AUDIT_SECONDS = 120.0
MONITOR_SECONDS = 4
"""An audit may take long; a controller that is gone is noticed after this many seconds."""
TELEMETRY_VERSION = "1.1"
"""The version of the endpoint that telemetry() came with."""
REMOVAL_VERSION = "1.5"
"""The version that remove_host() and remove_pool() came with."""
SPLITS_VERSION = "1.8"
"""The version that record_splits() came with."""
SPLIT_VIEW_VERSION = "1.10"
"""The version that split_view() came with."""
PREDICTOR_VERSION = "1.13"
"""The version since which split_view() is told which predictor the scheduler has."""
MODELS_VERSION = "1.11"
"""The version that promote_model() and rollback_model() came with."""
HAND_OVER_VERSION = "1.22"
"""The version since which assign() takes the host that a consumer moves from."""
TAKE_UP_VERSION = "1.23"
"""The version that take_up() came with, and assign() for a host with CPU caches apart from the source's."""
PROJECTS_VERSION = "1.12"
"""The version that set_project() came with; what is set travels with split_view() of any version."""


class ControllerAPI(
    ControllerHostAPI,
    ControllerLendingAPI,
    ControllerMitigationAPI,
    ControllerPlanAPI,
    ControllerPlannerAPI,
    ControllerQosAPI,
    ControllerSleepAPI,
):
    """Calls to `pondstack-controller`, to the leader or, for reads, to any. Times are in seconds.

    `timeout_seconds` is for a whole call, with all its attempts, and `policy` for each of them.
    """

    def __init__(self, bus: Bus, timeout_seconds: float = 30.0, policy: RetryPolicy | None = None) -> None:
        self._leader = bus.client(targets.controller_target())
        self._nodes = bus.client(targets.node_target())
        self._bus = bus
        self._timeout = timeout_seconds
        self._retrying = RetryingCaller(policy or RetryPolicy())

    def _call(self, method: str, *, timeout_seconds: float | None = None, **arguments: Any) -> Any:
        return self._call_retrying(self._leader, method, timeout_seconds, arguments)

    def _call_retrying(self, client: Any, method: str, timeout_seconds: float | None, arguments: dict[str, Any]) -> Any:
        def attempt(seconds: float) -> Any:
            return client.prepare(timeout=seconds).call({}, method, **arguments)

        return self._retrying.call(attempt, timeout_seconds or self._timeout)

    def assign(self, operation_id: str, request: AssignRequest) -> Grant:
        """Take free slices for a consumer (Pond 4.2: Add_capacity); they are ASSIGNING until acknowledged.

        Raises PoolShortage, PoolFragmented, HostUnusable, NotFound, NotAligned, OperationMismatch, NotLeader, and
        SlicesReturning when too few slices are free and enough are on their way back: repeat it in a second or so.

        What is handed over by `request.source` has "handed" in its grant; nothing is by a leader of a former release.
        """
        asked = {"operation_id": operation_id, **to_arguments(request)}
        if not request.source:
            return Grant.from_wire(self._call("assign", **asked))
        try:
            since = TAKE_UP_VERSION if request.write_back else HAND_OVER_VERSION
            return Grant.from_wire(self._call_since(since, "assign", **asked))
        except oslo_messaging.MessagingException as error:
            if not does_not_know(error):
                raise
        anew = to_arguments(replace(request, source="", write_back=False))
        return Grant.from_wire(self._call("assign", operation_id=operation_id, **anew))

    def acknowledge(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """The host has onlined the slices of an allocation: ASSIGNING becomes ONLINE."""
        self._call("acknowledge", operation_id=operation_id, allocation_uuid=allocation_uuid, host=host)

    def take_up(self, *, allocation_uuid: str, host: str) -> bool:
        """Return whether what was handed over to a host is its own, ONLINE, with all that its guest wrote.

        False while it is its former host's. Raises NotFound when it was released, Conflict when it was set aside: its
        former host was fenced, or restarted, before it had written its CPU caches back.
        """
        return bool(self._call_since(TAKE_UP_VERSION, "take_up", allocation_uuid=allocation_uuid, host=host))

    def release(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """The host has offlined the slices (Pond 4.2: Release_capacity): the leader asks it, and they are sanitised.

        Raises Conflict when its report does not list them as released, AgentUnavailable when it does not answer.
        """
        self._call("release", operation_id=operation_id, allocation_uuid=allocation_uuid, host=host)

    def heartbeat(self, report: Report) -> dict[str, Any]:
        """Report what is really attached; the first report registers the agent.

        Answers {"epoch": int, "forget": [allocation uuids of report.released that are settled],
        "pools": {uuid: {"name", "device", "slice_mib", "slices_total"}}, "tiering": as ordered, None: no order,
        "revoked": {ROLE/NAME: moment before which credentials are not believed, in seconds since 1970}}.
        """
        answer: dict[str, Any] = self._call("heartbeat", report=report.to_wire())
        return answer

    def telemetry(self, *, host: str, samples: Sequence[Sample]) -> None:
        """Hand over what was measured of a host's guests.

        Never repeated: a batch that is lost is lost, and one that is taken for lost may have been kept.
        """
        client = self._leader.prepare(timeout=self._timeout, version=TELEMETRY_VERSION)
        client.call({}, "telemetry", host=host, samples=[item.to_wire() for item in samples])

    def host_telemetry(self, *, host: str, readings: Sequence[HostReading]) -> None:
        """Hand over what a host measured of itself; never repeated, as telemetry(). A former controller takes none."""
        client = self._leader.prepare(timeout=self._timeout, version=PLAN_VERSION)
        try:
            client.call({}, "host_telemetry", host=host, readings=[item.to_wire() for item in readings])
        except oslo_messaging.MessagingException as error:
            if not does_not_know(error):
                raise

    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        def attempt(seconds: float) -> Any:
            return self._leader.prepare(timeout=seconds, version=since).call({}, name, **arguments)

        return self._retrying.call(attempt, self._timeout)

    def split_view(
        self, *, epoch: int, version: int, now: bool, timeout_seconds: float, predictor: str = ""
    ) -> SplitView:
        """Ask what splits are decided from, and what changed among those of instances since `version` of `epoch`.

        0, 0: all that is known. `now`: the room is to be of this moment, and Placement is asked for it. `predictor`:
        version of the predictor that the caller has, which is not sent again; a former controller sends it each time.
        Raises Unavailable, and oslo.messaging's UnsupportedVersion from a controller without splits.
        """
        known = {"epoch": epoch, "version": version, "now": now}

        def attempt(seconds: float) -> Any:
            try:
                context = self._leader.prepare(timeout=seconds, version=PREDICTOR_VERSION)
                return context.call({}, "split_view", **known, predictor=predictor)
            except oslo_messaging.MessagingException as error:
                if not does_not_know(error):
                    raise
                context = self._leader.prepare(timeout=seconds, version=SPLIT_VIEW_VERSION)
                return context.call({}, "split_view", **known)

        return SplitView.from_wire(self._retrying.call(attempt, timeout_seconds))

    def record_splits(self, *, splits: Sequence[UsedSplit], timeout_seconds: float) -> None:
        """Have the controller remember what instances were placed with; what is older than what it has changes nothing.

        Raises BadRequest, and oslo.messaging's UnsupportedVersion from a controller of the former release.
        """

        def attempt(seconds: float) -> Any:
            context = self._leader.prepare(timeout=seconds, version=SPLITS_VERSION)
            return context.call({}, "record_splits", splits=[item.to_wire() for item in splits])

        self._retrying.call(attempt, timeout_seconds)

    def snapshot(self, *, timeout_seconds: float) -> Snapshot:
        """Return the scheduler's view of all pools and hosts; any controller answers, a stand-by a moment behind."""
        return Snapshot.from_wire(self._call_retrying(self._nodes, "snapshot", timeout_seconds, {}))

    def confirm_migration(self, *, host: str, consumer_uuid: str, destination: str) -> bool:
        """Return whether Nova moves a server from `host`, which asks, to another; any controller answers.

        A controller of the former release cannot tell, and is taken to say yes, as its agents do. Raises Unavailable.
        """

        def attempt(seconds: float) -> Any:
            context = self._nodes.prepare(timeout=seconds, version=MIGRATIONS_VERSION)
            return context.call(
                {}, "confirm_migration", host=host, consumer_uuid=consumer_uuid, destination=destination
            )

        try:
            return bool(self._retrying.call(attempt, self._timeout))
        except oslo_messaging.MessagingException as error:
            if not does_not_know(error):
                raise
            return True

    def controllers(self) -> list[dict[str, Any]]:
        """List the controllers (pondstack.ledger.records.ControllerView as dicts); any controller answers."""
        answer: list[dict[str, Any]] = self._call_retrying(self._nodes, "controllers", None, {})
        return answer

    def failover(self, *, leader: str, to: str | None) -> None:
        """Have the controller `leader` hand over to `to` (None: whoever stands by); it is done soon after the answer.

        Never repeated, so that one command is one hand-over. Raises NotLeader, NotFound, Conflict, MessagingTimeout.
        """
        client = self._bus.client(targets.node_target(leader))
        client.prepare(timeout=self._timeout).call({}, "failover", to=to)

    def remove_host(self, *, name: str, operation_id: str | None = None) -> None:
        """Forget a host; a report of its agent makes it a new one. Raises NotFound, NotEmpty with what is left."""
        self._call_since(REMOVAL_VERSION, "remove_host", name=name, operation_id=operation_id or str(uuid4()))

    def remove_pool(self, *, uuid: str, operation_id: str | None = None) -> None:
        """Forget a pool whose device is gone for good; raises NotFound, NotEmpty with what is left."""
        self._call_since(REMOVAL_VERSION, "remove_pool", uuid=uuid, operation_id=operation_id or str(uuid4()))

    def promote_model(self, *, version: str, operation_id: str | None = None) -> dict[str, Any]:
        """Have a prediction model serve, whatever its verdict was.

        Answers {"running": its version, "former": the one that served before, None: the static share}.
        Raises NotFound, and Conflict where it runs already or is corrupt.
        """
        answer: dict[str, Any] = self._call_since(
            MODELS_VERSION, "promote_model", version=version, operation_id=operation_id or str(uuid4())
        )
        return answer

    def rollback_model(self, *, version: str, operation_id: str | None = None) -> dict[str, Any]:
        """Retire the prediction model `version`, which must run; the one before it serves again, or the static share.

        Answers as promote_model. Raises NotFound, and Conflict where another one runs.
        """
        answer: dict[str, Any] = self._call_since(
            MODELS_VERSION, "rollback_model", version=version, operation_id=operation_id or str(uuid4())
        )
        return answer

    def set_project(
        self, *, project_id: str, changes: dict[str, Any], operation_id: str | None = None
    ) -> dict[str, Any]:
        """Set for a project what `changes` names; None: unset.

        default_policy (none, auto), max_pool_percent (0 to 100). Answers what is set then, by these names.
        Raises BadRequest.
        """
        answer: dict[str, Any] = self._call_since(
            PROJECTS_VERSION,
            "set_project",
            project_id=project_id,
            changes=changes,
            operation_id=operation_id or str(uuid4()),
        )
        return answer

    def audit(self, *, repair: bool) -> dict[str, Any]:
        """Compare ledger, Placement, agents and device now; with `repair` also mend what can be explained.

        Answers {"clean": bool, "findings": [{"code", "severity", "subject", "detail", "action"}], "totals": {...}}.
        """

        def attempt(_seconds: float) -> Any:
            context = self._leader.prepare(timeout=AUDIT_SECONDS, call_monitor_timeout=MONITOR_SECONDS)
            return context.call({}, "audit", repair=repair)

        answer: dict[str, Any] = self._retrying.call(attempt, AUDIT_SECONDS)
        return answer
