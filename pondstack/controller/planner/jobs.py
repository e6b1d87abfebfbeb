"""What a leader does for jobs of the planner: takes them, and has one after the other replayed in a process of its own.

A job is a record: the next leader begins those again that a controller's end interrupted, up to [planner] tries.
"""

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.bounded_process import Limits, OnlyChild
from pondstack.controller.gate import Gate
from pondstack.controller.planner.endpoint import PlannerEndpoint
from pondstack.controller.planner.past import Past
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.store import SQL, planner_jobs
from pondstack.domain.errors import BadRequest, Conflict, NotFound, NotLeader, PondError, Unavailable
from pondstack.domain.planner_job import JobState, PlannerJob
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import Transaction
from pondstack.planner.job import process, worker
from pondstack.planner.job.order import Order, Source

LOG = log.getLogger(__name__)
ROUND_SECONDS = 10.0
STOP_SECONDS = 1.0
"""How long stop() waits for a round under way; its child is killed, and a former leader writes nothing."""
NEEDED = ("jinja2", "joblib", "matplotlib", "numba", "numpy", "polars")
"""Packages of the extra `planner`."""


class Progress:
    """How far a job is: written down when that changes, and whether it is still wanted looked at each time."""

    def __init__(
        self,
        read: Callable[[Callable[[Session], PlannerJob]], PlannerJob],
        write: Callable[[Callable[[Session], bool]], bool],
        uuid: str,
        stopping: Callable[[], bool],
    ) -> None:
        self._read, self._write, self._uuid, self._stopping = read, write, uuid, stopping
        self._told = (0, 0)

    def goes_on(self, done: int, total: int) -> bool:
        """Return whether the replay is to go on: not where the job was cancelled or the leader ends."""
        if self._stopping():
            return False
        try:
            if (done, total) == self._told:
                return self._read(lambda session: planner_jobs.record(session, self._uuid)).is_open
            written = self._write(lambda session: planner_jobs.progress(session, self._uuid, done, total))
        except NotFound:
            return False
        except NotLeader:
            raise
        except Unavailable as error:  # hours of work are not thrown away for it
            LOG.debug("The progress of planner job %s is not written now: %s", self._uuid, error)
            return True
        self._told = (done, total)
        return written


class PlannerJobs:
    """Those of one epoch. Thread-safe."""

    def __init__(self, resources: ControllerResources, ledger: Ledger, gate: Gate) -> None:
        self._resources, self._ledger = resources, ledger
        self._group = resources.conf.planner
        self._database = resources.database
        self._child = OnlyChild()
        self._looks = True
        self._worker = PeriodicWorker("planner", ROUND_SECONDS, self.run)
        self.endpoint = PlannerEndpoint(jobs=self, gate=gate)

    # What operators ask for

    def create(self, operation_id: str, order: Mapping[str, Any], user_id: str, project_id: str) -> str:
        """Have one queued; returns its UUID, a repetition the same one. Raises BadRequest, Conflict."""
        wanted = Order.checked(order)
        record = wanted.to_record()

        def work(tx: Transaction) -> dict[str, Any]:
            self._check(wanted, planner_jobs.waiting(tx))
            uuid = str(uuid5(NAMESPACE_OID, f"pondstack planner job {operation_id}"))
            new = PlannerJob(uuid, JobState.QUEUED, order=record, user_id=user_id, project_id=project_id)
            planner_jobs.add(tx, new)
            return {"uuid": uuid}

        arguments = {"order": record, "user_id": user_id, "project_id": project_id}
        uuid: str = self._ledger.once(operation_id, "create_planner_job", arguments, work)["uuid"]
        self._wake()
        return uuid

    def cancel(self, operation_id: str, uuid: str) -> None:
        """Put an end to one; its process is killed when it is looked at next. Raises NotFound, Conflict."""
        self._change(operation_id, "cancel_planner_job", uuid, planner_jobs.cancel)

    def remove(self, operation_id: str, uuid: str) -> None:
        """Forget one that has ended, and its report. Raises NotFound, Conflict."""
        self._change(operation_id, "remove_planner_job", uuid, planner_jobs.remove)

    def _change(self, operation_id: str, kind: str, uuid: str, change: Callable[[Session, str], None]) -> None:
        def work(tx: Transaction) -> dict[str, Any]:
            change(tx, uuid)
            return {"uuid": uuid}

        self._ledger.once(operation_id, kind, {"uuid": uuid}, work)
        self._wake()

    def _check(self, order: Order, waiting: int) -> None:
        if not self._group.enabled:
            raise Conflict("[planner] enabled of the controllers is off: run pondstack-planner on another machine")
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            names, name = ", ".join(missing), self._resources.name
            raise Conflict(f"controller {name} lacks {names}: install pondstack there with its extra planner")
        if order.source is Source.CLOUD and self._past() is None:
            raise Conflict(
                "[placement] enabled of the controllers is off, and a cloud's past is told by Nova and Placement"
            )
        if order.parts > self._group.most_parts:
            most = f"more than {self._group.most_parts} ([planner] most_parts)"
            raise BadRequest(
                f"it would have {order.parts} parts, {most}: ask for fewer seeds, sizes, policies or shares"
            )
        if waiting >= self._group.most_waiting:
            raise Conflict(f"{waiting} planner jobs wait or run already ([planner] most_waiting); cancel one, or wait")

    # What goes on

    def start(self) -> None:
        """Go on with what is queued, and with what a former leader had running."""
        self._worker.start()

    def stop(self) -> None:
        """End; a replay under way is killed, and the next leader begins it again."""
        self._child.stop()
        self._worker.stop(STOP_SECONDS)

    def tidy(self) -> None:
        """Forget jobs that ended long ago. Raises NotLeader, Unavailable."""
        self._write(lambda session: planner_jobs.prune(session, self._group.keep_seconds) > 0)

    def _wake(self) -> None:
        self._looks = True
        self._worker.wake()

    def run(self) -> None:
        """Have all that wait replayed, one after the other. Raises Unavailable, NotLeader; it is tried again then."""
        if not self._looks or not self._group.enabled:
            return
        self._looks = False
        try:
            while not self._child.stopping and (waiting := self._database.read(planner_jobs.unended)):
                self._attend(waiting[0])
        except BaseException:
            self._looks = True
            raise

    def _attend(self, job: PlannerJob) -> None:
        """`job`: queued, or of a controller that ended: this one runs a single job at a time, and has none now."""
        reason = ""
        if job.state is JobState.RUNNING:
            reason = f"controller {job.controller} ended, or led no longer, while it ran"
            if job.tries >= self._group.tries:
                text = f"{reason}, for the {job.tries}. time ([planner] tries); ask for it again"
                self._write(lambda session: planner_jobs.fail(session, job.uuid, text))
                LOG.warning("Planner job %s has failed: %s", job.uuid, text)
                return
            reason += ", so it was begun again"
        if not self._write(lambda session: planner_jobs.begin(session, job.uuid, self._resources.name, reason)):
            return
        LOG.info("Planner job %s begins%s", job.uuid, f": {reason}" if reason else "")
        try:
            outcome = self._replay(job)
            if outcome is None:
                return
            self._write(lambda session: planner_jobs.end(session, job.uuid, outcome.summary, outcome.report))
            LOG.info("Planner job %s has ended", job.uuid)
        except NotLeader:
            raise
        except (PondError, OSError) as error:
            if self._child.stopping:
                return
            text = error.message if isinstance(error, PondError) else f"{self._resources.name}: {error}"
            self._write(lambda session: planner_jobs.fail(session, job.uuid, text))
            LOG.warning("Planner job %s has failed: %s", job.uuid, text)

    def _replay(self, job: PlannerJob) -> process.Outcome | None:
        order = Order.from_record(job.order)
        with tempfile.TemporaryDirectory(prefix="pondstack-planner-") as name:
            folder = Path(name)
            (folder / worker.ORDER).write_text(json.dumps(order.to_record()))
            if order.source is Source.CLOUD:
                past = self._past()
                if past is None:
                    raise Conflict("[placement] enabled is off at the controller that leads now")
                past.write(folder, datetime.now(UTC), order.window_days)
            limits = Limits(self._group.seconds, self._group.memory_mib)
            follow = Progress(self._database.read, self._write, job.uuid, lambda: self._child.stopping)
            try:
                return process.replay(folder, limits, follow.goes_on, self._child.started, time.monotonic)
            finally:
                self._child.ended()

    def _past(self) -> Past | None:
        nova, placement = self._resources.servers, self._resources.placement
        if nova is None or placement is None:
            return None
        return Past(nova, placement, self._resources.reader.history, self._resources.conf.prediction.min_coverage)

    def _write(self, change: Callable[[Session], bool]) -> bool:
        """Change a row, unless another controller leads: raises NotLeader then."""

        def work(session: Session) -> bool:
            SQL.check_epoch(session, self._ledger.epoch, self._resources.conf.ha.lease_seconds)
            return change(session)

        return self._database.write(work)
