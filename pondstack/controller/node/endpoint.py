"""RPC endpoint of every controller, leading or not: reads of the rack, the leader's hand-over, a sign of life."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import wraps
from typing import Any

import oslo_messaging

from pondstack.controller.pool.snapshot import make_snapshot
from pondstack.domain.conform import checked
from pondstack.domain.errors import PondError
from pondstack.domain.rack import RackView
from pondstack.ledger.records import ControllerView
from pondstack.rpc.node_api import MIGRATIONS_VERSION


def _expected(method: Callable[..., Any]) -> Callable[..., Any]:
    wrapped: Callable[..., Any] = wraps(method)(oslo_messaging.expected_exceptions(PondError)(checked(method)))
    return wrapped


class NodeEndpoint:
    """What each controller answers on the topic pondstack-node.

    `view` gives the rack and the leader's epoch, `revoked` since when whose credentials are not believed; `confirm` is
    Migrations.confirm.
    """

    target = oslo_messaging.Target(version=MIGRATIONS_VERSION)

    def __init__(
        self,
        *,
        view: Callable[[], tuple[RackView, int]],
        controllers: Callable[[], list[ControllerView]],
        failover: Callable[[str | None], None],
        confirm: Callable[[str, str, str], bool],
        revoked: Callable[[], Mapping[str, float]],
        down_seconds: float,
    ) -> None:
        self._view = view
        self._controllers = controllers
        self._failover = failover
        self._confirm = confirm
        self._revoked = revoked
        self._down = down_seconds

    def ping(self, _context: Any) -> None:
        """Answer (since 1.1): this controller asks itself whether the broker takes its calls to it and back."""

    @_expected
    def snapshot(self, _context: Any) -> dict[str, Any]:
        """Return the scheduler's view; a stand-by's is at most a few operations old."""
        view, epoch = self._view()
        snapshot = make_snapshot(view, epoch=epoch, down_seconds=self._down)
        return replace(snapshot, revoked=dict(self._revoked())).to_wire()

    @_expected
    def confirm_migration(self, _context: Any, *, host: str, consumer_uuid: str, destination: str) -> bool:
        """Return whether Nova moves a server from `host` to another (since 1.2); raises Unavailable."""
        return self._confirm(consumer_uuid, host, destination)

    @_expected
    def controllers(self, _context: Any) -> list[dict[str, Any]]:
        """List the controllers."""
        return [asdict(item) for item in self._controllers()]

    @_expected
    def failover(self, _context: Any, *, to: str | None) -> None:
        """Hand the lead over; answered before it is done. Raises NotLeader, NotFound, Conflict."""
        self._failover(to)
