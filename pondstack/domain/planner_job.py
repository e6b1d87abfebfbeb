"""A job of the planner: a replay that the controllers run in the background, its states and its progress. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class JobState(StrEnum):
    """Where a job stands. ENDED: its report can be fetched."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = frozenset({JobState.QUEUED, JobState.RUNNING})
"""States of which something may still become."""


@dataclass(frozen=True, slots=True)
class PlannerJob:
    """A job without its report.

    `order`: what is replayed and with which settings, as pondstack.planner.job.order has it.
    `done` of `total`: parts of the replay, 0 of 0 before it is known how many there are. `tries`: how often it was
    begun. `controller`: the one that ran it last, "": none. `summary`: one screen of text, "" before the end. Times in
    seconds since the epoch by the store's clock.
    """

    uuid: str
    state: JobState
    order: Mapping[str, Any] = field(default_factory=dict)
    user_id: str = ""
    project_id: str = ""
    done: int = 0
    total: int = 0
    tries: int = 0
    controller: str = ""
    reason: str = ""
    summary: str = ""
    created_at: float = 0.0
    begun_at: float | None = None
    ended_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether something may still become of it."""
        return self.state in OPEN


@dataclass(frozen=True, slots=True)
class PlannerReport:
    """What a job ended with: all answers as pondstack.planner.report.document has them, and the page of HTML."""

    answers: Mapping[str, Any]
    html: str
