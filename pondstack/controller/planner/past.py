"""Writes down what a cloud tells of its own past, for the process that replays it: no instance is kept in memory."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pondstack.clients.compute_room import ComputeRoom
from pondstack.clients.nova import Nova
from pondstack.clients.placement import Placement
from pondstack.domain.errors import BadRequest
from pondstack.domain.history import InstanceFacts, Selection
from pondstack.domain.telemetry import Source
from pondstack.ledger.reader import HistoryReader
from pondstack.planner.job import worker

MOST_INSTANCES = 1_000_000


class Past:
    """Of the cloud that a controller serves: Nova's instances, Placement's hosts, the history of untouched memory."""

    def __init__(self, nova: Nova, placement: Placement, history: HistoryReader, min_coverage: float) -> None:
        """`min_coverage`: share of an instance's life that must have been observed, as in [prediction]."""
        self._nova, self._placement = nova, placement
        self._history, self._min_coverage = history, min_coverage

    def write(self, folder: Path, until: datetime, window_days: float) -> None:
        """Write instances and hosts. Raises Unavailable, BadRequest where there are more than a replay takes."""
        since = until - timedelta(days=window_days)
        untouched, synthetic = self._untouched(since, until)
        written = 0
        with (folder / worker.INSTANCES).open("w") as lines:
            for changed_since in (None, since):
                for page in self._nova.instances(changed_since):
                    written += len(page)
                    if written > MOST_INSTANCES:
                        raise BadRequest(
                            f"more than {MOST_INSTANCES} instances are too many: give a shorter --window-days"
                        )
                    lines.writelines(f"{json.dumps(_record(item, untouched))}\n" for item in page)
        room = ComputeRoom.of(self._placement)
        told = {
            "since": since.isoformat(),
            "until": until.isoformat(),
            "hosts": {"number": room.number, "vcpus": room.vcpus, "memory_mib": room.memory_mib},
            "synthetic": synthetic,
        }
        (folder / worker.WINDOW).write_text(json.dumps(told))

    def _untouched(self, since: datetime, until: datetime) -> tuple[dict[str, float], int]:
        """Return the untouched memory in percent of each instance whose label would train a model.

        And of how many it is synthetic.
        """
        chosen = Selection(since, until, min_coverage=self._min_coverage)
        known = [item for item in self._history.lifetimes(chosen) if item.untouched_mib is not None and item.memory_mib]
        shares = {item.instance_uuid: 100.0 * (item.untouched_mib or 0) / item.memory_mib for item in known}
        return shares, sum(item.source == Source.SYNTHETIC for item in known)


def _record(item: InstanceFacts, untouched: dict[str, float]) -> dict[str, Any]:
    return {
        "uuid": item.instance_uuid,
        "project_id": item.project_id,
        "vcpus": item.vcpus,
        "memory_mib": item.memory_mib,
        "started": item.created_at.isoformat(),
        "ended": None if item.deleted_at is None else item.deleted_at.isoformat(),
        "untouched_percent": untouched.get(item.instance_uuid),
    }
