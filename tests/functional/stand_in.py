"""A stand-in for pondstack-controller: the scheduler's two calls over RPC, with the real sizing code and no ledger."""

import threading
from dataclasses import dataclass, field
from typing import Any

import oslo_messaging

from pondstack.domain import sizing
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction.serving import PoolRoom, features_from_wire, fit
from pondstack.rpc import transport as rpc
from pondstack.rpc.controller_api import SPLITS_VERSION
from pondstack.rpc.wire import PoolView, Snapshot, SplitAnswer, UsedSplit


@dataclass
class StandInController:
    """RPC endpoint. `hold` blocks get_split while it is cleared; `fault` is raised by get_split when set."""

    target = oslo_messaging.Target(version=SPLITS_VERSION)

    pools: list[PoolView] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    splits: list[dict[str, Any]] = field(default_factory=list)
    used: dict[str, UsedSplit] = field(default_factory=dict)
    snapshots: int = 0
    fault: Exception | None = None
    hold: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.hold.set()

    def get_split(self, _context: dict[str, Any], features: dict[str, Any]) -> dict[str, Any]:
        """Split by the flavor's specs, as the real service does."""
        self.splits.append(features)
        self.hold.wait(30)
        if self.fault is not None:
            raise self.fault
        known = features_from_wire(features)
        split = fit(sizing.decide(known, sizing.StaticShare()), known, [_room(pool) for pool in self.pools])
        return SplitAnswer(
            split.local_mib, split.pool_mib, split.source, split.confidence, split.reason, DEFAULT_SLICE_MIB
        ).to_wire()

    def record_splits(self, _context: dict[str, Any], splits: list[dict[str, Any]]) -> None:
        """Keep what instances were placed with."""
        for item in splits:
            self.used[item["features"]["instance_uuid"]] = UsedSplit.from_wire(item)

    def snapshot(self, _context: dict[str, Any]) -> dict[str, Any]:
        """Return the pools and hosts that the test has set."""
        self.snapshots += 1
        return Snapshot(epoch=1, pools=tuple(self.pools), usable_hosts=tuple(self.hosts)).to_wire()


def _room(pool: PoolView) -> PoolRoom:
    free = max(0, pool.free_slices - pool.buffer_slices)
    return PoolRoom(pool.name, pool.slices_total * pool.slice_mib, free * pool.slice_mib)


class Serving:
    """RPC servers of the stand-in: it leads, and it is the one controller that there is."""

    def __init__(self, controller: StandInController, conf: Any, url: str | None = None) -> None:
        bus = rpc.get_transport(conf, url)
        self._servers = [
            oslo_messaging.get_rpc_server(bus, target("controller"), [controller], executor="threading")
            for target in (rpc.controller_target, rpc.node_target)
        ]
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        """Take no new request, and finish those under way."""
        for server in self._servers:
            server.stop()
        for server in self._servers:
            server.wait()
