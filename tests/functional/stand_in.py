"""A stand-in for pondstack-controller: what schedulers ask over RPC, without a ledger."""

import threading
from dataclasses import dataclass, field
from typing import Any

import oslo_messaging

from pondstack.domain.known_split import KnownSplit
from pondstack.domain.project_settings import ProjectSettings
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import STATIC_AUTO_PERCENT
from pondstack.prediction.serving import static_predictor
from pondstack.rpc import targets
from pondstack.rpc import transport as rpc
from pondstack.rpc.controller_api import SPLIT_VIEW_VERSION
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.wire import PoolView, Snapshot, SplitView, UsedSplit


@dataclass
class StandInController:
    """RPC endpoint. `hold` blocks split_view while it is cleared; `percent`: share of automatic splits."""

    target = oslo_messaging.Target(version=SPLIT_VIEW_VERSION)

    pools: list[PoolView] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    used: dict[str, UsedSplit] = field(default_factory=dict)
    known: list[KnownSplit] = field(default_factory=list)
    projects: dict[str, ProjectSettings] = field(default_factory=dict)
    percent: int = STATIC_AUTO_PERCENT
    snapshots: int = 0
    hold: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.hold.set()

    def split_view(self, _context: dict[str, Any], **_known: Any) -> dict[str, Any]:
        """Return what splits are decided from, all of it each time."""
        self.hold.wait(30)
        return SplitView(
            epoch=1,
            version=1,
            full=True,
            predictor=static_predictor(self.percent),
            rooms=tuple(self._room(pool) for pool in self.pools),
            splits=tuple(self.known),
            projects=self.projects,
        ).to_wire()

    def record_splits(self, _context: dict[str, Any], splits: list[dict[str, Any]]) -> None:
        """Keep what instances were placed with."""
        for item in splits:
            self.used[item["features"]["instance_uuid"]] = UsedSplit.from_wire(item)

    def snapshot(self, _context: dict[str, Any]) -> dict[str, Any]:
        """Return the pools and hosts that the test has set."""
        self.snapshots += 1
        return Snapshot(epoch=1, pools=tuple(self.pools), usable_hosts=tuple(self.hosts)).to_wire()

    def _room(self, pool: PoolView) -> PoolRoom:
        free = max(0, pool.free_slices - pool.buffer_slices) * pool.slice_mib
        return PoolRoom(pool.name, pool.slices_total * pool.slice_mib, free)


class Serving:
    """RPC servers of the stand-in: it leads, and it is the one controller that there is."""

    def __init__(self, controller: StandInController, conf: Any, url: str | None = None) -> None:
        bus = rpc.get_transport(conf, Identity(Role.CONTROLLER, "controller"), url)
        self._servers = [
            bus.server(target("controller"), [controller])
            for target in (targets.controller_target, targets.node_target)
        ]
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        """Take no new request, and finish those under way."""
        for server in self._servers:
            server.stop()
        for server in self._servers:
            server.wait()
