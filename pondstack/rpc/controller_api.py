"""Client of the controller. Every method that changes something takes an operation id and is idempotent by it.

A caller that got no answer (time-out, broker gone) calls again with the same operation id.
"""

from collections.abc import Sequence
from typing import Any

import oslo_messaging

from pondstack.rpc import transport as rpc
from pondstack.rpc.wire import Grant, Report, Snapshot, SplitAnswer


class ControllerAPI:
    """Calls to `pondstack-controller`. Times are in seconds."""

    def __init__(self, transport: Any, timeout_seconds: float = 30.0) -> None:
        self._client = oslo_messaging.get_rpc_client(transport, rpc.controller_target())
        self._timeout = timeout_seconds

    def _call(self, method: str, *, timeout_seconds: float | None = None, **arguments: Any) -> Any:
        context = self._client.prepare(timeout=timeout_seconds or self._timeout)
        return context.call({}, method, **arguments)

    def assign(
        self,
        *,
        operation_id: str,
        consumer_uuid: str,
        host: str,
        pool_uuid: str,
        pool_mib: int,
        guest_mib: int,
        project_id: str = "",
        user_id: str = "",
        shape: Sequence[int] | None = None,
    ) -> Grant:
        """Take free slices for a consumer (Pond 4.2: Add_capacity); they are ASSIGNING until acknowledged.

        `shape`: slices per extent that the answer must have (a live migration's destination); None lets the allocator
        choose. Raises PoolShortage, PoolFragmented, HostUnusable, NotFound, NotAligned, OperationMismatch, NotLeader.
        """
        return Grant.from_wire(
            self._call(
                "assign",
                operation_id=operation_id,
                consumer_uuid=consumer_uuid,
                host=host,
                pool_uuid=pool_uuid,
                pool_mib=pool_mib,
                guest_mib=guest_mib,
                project_id=project_id,
                user_id=user_id,
                shape=list(shape) if shape else None,
            )
        )

    def acknowledge(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """The host has onlined the slices of an allocation: ASSIGNING becomes ONLINE."""
        self._call("acknowledge", operation_id=operation_id, allocation_uuid=allocation_uuid, host=host)

    def release(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """The host has offlined the slices (Pond 4.2: Release_capacity): they go to be sanitised."""
        self._call("release", operation_id=operation_id, allocation_uuid=allocation_uuid, host=host)

    def heartbeat(self, report: Report) -> dict[str, Any]:
        """Tell what is really attached; the first one registers the agent.

        Answers {"epoch": int, "forget": [allocation uuids of report.released that are settled],
        "pools": {uuid: {"name", "device", "slice_mib", "slices_total"}}}.
        """
        answer: dict[str, Any] = self._call("heartbeat", report=report.to_wire())
        return answer

    def get_split(self, *, features: dict[str, Any], timeout_seconds: float) -> SplitAnswer:
        """Ask how to split a VM (pondstack.domain.sizing.Features as a dict); remembered by instance."""
        return SplitAnswer.from_wire(self._call("get_split", timeout_seconds=timeout_seconds, features=features))

    def snapshot(self, *, timeout_seconds: float) -> Snapshot:
        """Return the scheduler's view of all pools and hosts."""
        return Snapshot.from_wire(self._call("snapshot", timeout_seconds=timeout_seconds))

    def set_host(self, *, name: str, enabled: bool, reason: str, generation: int | None) -> dict[str, Any]:
        """Enable or disable a host for new pool memory; raises GenerationConflict."""
        answer: dict[str, Any] = self._call(
            "set_host", name=name, enabled=enabled, reason=reason, generation=generation
        )
        return answer

    def audit(self, *, repair: bool) -> dict[str, Any]:
        """Compare ledger, Placement, agents and device now; with `repair` also mend what can be explained.

        Answers {"clean": bool, "findings": [{"code", "severity", "subject", "detail", "action"}], "totals": {...}}.
        """
        answer: dict[str, Any] = self._call("audit", timeout_seconds=120.0, repair=repair)
        return answer
