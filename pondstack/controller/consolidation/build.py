"""Joins what a leader has for consolidation: its thread, what decides, what carries out, its RPC endpoint."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.consolidation.applier.applier import Applier, Pace
from pondstack.consolidation.applier.handlers import handlers
from pondstack.consolidation.applier.lends import Lends
from pondstack.consolidation.applier.sleeps import Sleeps
from pondstack.consolidation.decision.settings import Settings
from pondstack.controller.consolidation.candidates import Candidates
from pondstack.controller.consolidation.decisions import Decisions
from pondstack.controller.consolidation.endpoint import PlanEndpoint
from pondstack.controller.consolidation.inputs import Inputs
from pondstack.controller.consolidation.live_moves import why_it_stays_now
from pondstack.controller.consolidation.plan_settings import PlanSettings
from pondstack.controller.consolidation.transition_notifier import TransitionNotifier
from pondstack.controller.consolidation.unplaced import Pace as UnplacedPace
from pondstack.controller.consolidation.unplaced import Unplaced, cause, record
from pondstack.controller.gate import Gate
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.store import SQL
from pondstack.domain.errors import BadRequest, Conflict, Unavailable
from pondstack.domain.plan import Action, ActionKind, Afterwards, Plan, PlanKind, PlanState, PlanTrigger
from pondstack.domain.quiet_hours import QuietHours
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)

STOP_SECONDS = 60.0
NOTIFY_SECONDS = 2.0
"""Seconds between two looks for plans and sleeps of which nobody was told."""


class Consolidation:
    """That of one epoch. Without Placement, and Nova with it, no plan is made."""

    def __init__(
        self,
        resources: ControllerResources,
        ledger: Ledger,
        executor: Executor,
        gate: Gate,
        sleeps: Sleeps,
        lends: Lends,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._group = resources.conf.consolidation
        self._settings = PlanSettings(resources.conf, ledger.plans.limits)
        self._counts = resources.counts
        self._reader, self._plans = resources.reader, ledger.plans
        self._clock, self._now = resources.clock, now
        self._looks = True
        self._auto_at = resources.clock() + self._group.auto_seconds
        self._worker = PeriodicWorker("consolidation", self._group.interval_seconds, self._round)
        lease_seconds = resources.conf.ha.lease_seconds

        def fence(session: Session) -> None:
            SQL.check_epoch(session, ledger.epoch, lease_seconds)

        notifier = TransitionNotifier(resources.database, resources.notify_transition, fence)
        self._teller = PeriodicWorker("transition notifier", NOTIFY_SECONDS, notifier.run)
        self._applier: Applier | None = None
        self._decisions: Decisions | None = None
        self._unplaced: Unplaced | None = None
        nova, placement = resources.servers, resources.placement
        if nova is not None and placement is not None:
            stays = why_it_stays_now(resources.reader.rack)
            self._applier = Applier(
                ledger.plans,
                lambda: handlers(nova, sleeps, lends, self._settings.least_awake(), stays),
                self._pace,
                resources.clock,
                changed=self._count,
                settled=self._count_action,
            )
            inputs = Inputs(
                nova,
                placement,
                resources.host_telemetry,
                lambda: resources.reader.rack(lent=True),
                resources.reader.history,
                executor,
            )
            self._decisions = Decisions(ledger.plans, inputs, Candidates(placement))
            self._unplaced = Unplaced(nova, ledger.plans, ledger.host_sleeps, self._unplaced_pace, resources.clock, now)
        self.endpoint = PlanEndpoint(planning=self, store_readings=resources.host_telemetry.write, gate=gate)

    # What operators ask for

    def create(self, operation_id: str, kind: PlanKind, target: str, changes: dict[str, Any]) -> str:
        """Have a plan decided; returns its UUID. Raises BadRequest, Conflict, NotFound."""
        self._need_nova()
        settings = self._settings.of(changes)
        if kind is not PlanKind.CONSOLIDATE:
            if not target or changes:
                raise BadRequest(f"to {kind} takes the name of a host, and no settings")
            self._reader.host(target)
        uuid = self._plans.create(
            operation_id,
            kind,
            trigger=PlanTrigger.OPERATOR,
            afterwards=settings.afterwards if kind is PlanKind.CONSOLIDATE else Afterwards.KEEP,
            settings=settings.to_record() if kind is PlanKind.CONSOLIDATE else {},
            target=target,
            at_once=kind is not PlanKind.CONSOLIDATE,
        )
        self._wake()
        return uuid

    def apply(self, operation_id: str, uuid: str) -> None:
        """Have a proposed plan carried out. Raises NotFound, Conflict."""
        self._need_nova()
        self._plans.apply(operation_id, uuid, most_seconds=self._group.plan_seconds)
        self._wake()

    def cancel(self, operation_id: str, uuid: str) -> None:
        """Put an end to a plan. Raises NotFound, Conflict."""
        self._plans.cancel(operation_id, uuid)
        self._wake()

    def freeze(self, operation_id: str, reason: str | None) -> None:
        """Have no plan of consolidation begin or go on, or let them."""
        self._plans.freeze(operation_id, reason)
        self._wake()

    def set_limits(self, operation_id: str, changes: Mapping[str, Any]) -> None:
        """Set, or unset (None), what holds in place of options from the next plan on. Raises BadRequest."""
        self._plans.set_limits(operation_id, changes)

    def _need_nova(self) -> None:
        if self._applier is None:
            raise Conflict("[placement] enabled is off, and a plan is made of what Placement and Nova say")

    # What goes on

    def unattended(self) -> Sequence[Plan]:
        """Return the plans that are under way."""
        return self._plans.unattended()

    def _count(self, plan: Plan) -> None:
        if not plan.is_open:
            self._counts.plan_ended(plan.kind, plan.state)

    def _count_action(self, action: Action) -> None:
        if action.kind is ActionKind.MIGRATE:
            self._counts.plan_migration_ended(action.state)

    def start(self) -> None:
        """Go on with what former leaders began."""
        if self._applier is not None:
            self._worker.start()
            self._teller.start()

    def stop(self) -> None:
        """End after the step in hand."""
        self._worker.stop(STOP_SECONDS)
        self._teller.stop(STOP_SECONDS)

    def unplaced(self) -> None:
        """Take a hint that Nova has found no host for a server."""
        if self._unplaced is not None:
            self._unplaced.hint()

    def _wake(self) -> None:
        self._looks = True
        self._worker.wake()

    def _round(self) -> None:
        """Look, unless nothing is under way: all of this epoch's have begun here."""
        self._consider()
        self._consider_unplaced()
        if not self._looks or self._applier is None or self._decisions is None:
            return
        self._looks, still = False, True
        try:
            for plan in self._plans.unattended():
                if plan.state is PlanState.DECIDING:
                    self._decisions.decide(plan)
            present = self._plans.unattended()
            self._applier.run([plan for plan in present if plan.state is not PlanState.DECIDING])
            still = bool(present)
        finally:
            self._looks = self._looks or still

    def _consider(self) -> None:
        """Make and apply a plan by policy, where [consolidation] auto is on and it is time."""
        group = self._group
        if not group.auto or self._clock() < self._auto_at or self._is_quiet():
            return
        self._auto_at = self._clock() + group.auto_seconds
        if self._plans.frozen() is not None or self._plans.unattended():
            return
        self._create_by_policy(self._settings.of({}), at_once=True)

    def _consider_unplaced(self) -> None:
        """Make a plan that wakes hosts for servers that found none, and apply it where [consolidation] auto is on."""
        if self._unplaced is None or not self._unplaced.is_due:
            return
        if self._is_quiet() or self._plans.frozen() is not None:
            return
        try:
            found = self._unplaced.new()
        except Unavailable as error:
            LOG.debug("Whether servers found no host is unknown: %s", error.message)
            return
        if found:
            settings = replace(self._settings.of({}), afterwards=Afterwards.KEEP)
            inputs = {"cause": cause(found), "unplaced": [record(item) for item in found]}
            self._create_by_policy(settings, at_once=bool(self._group.auto), inputs=inputs)
            self._counts.unplaced(len(found))

    def _create_by_policy(self, settings: Settings, *, at_once: bool, inputs: Mapping[str, Any] | None = None) -> None:
        self._plans.create(
            str(uuid4()),
            PlanKind.CONSOLIDATE,
            trigger=PlanTrigger.POLICY,
            afterwards=settings.afterwards,
            settings=settings.to_record(),
            at_once=at_once,
            inputs=inputs,
        )
        self._looks = True

    def _is_quiet(self) -> bool:
        moment = self._now().time()
        hours = [QuietHours.parse(text, "[consolidation] quiet_hours") for text in self._group.quiet_hours]
        return any(item.cover(moment) for item in hours)

    def _unplaced_pace(self) -> UnplacedPace:
        return UnplacedPace(self._group.unplaced_seconds, self._group.plan_seconds)

    def _pace(self) -> Pace:
        group = self._group
        return Pace(group.migrations_at_a_time, group.migrations_per_hour, group.idle_seconds, group.tries)
