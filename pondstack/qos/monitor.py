"""One round of the QoS monitor: reads all VMs with pool memory, decides, keeps what is new, has VMs mitigated."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from oslo_config import cfg
from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.read.pool_guests import pool_guests
from pondstack.db.store import qos
from pondstack.domain.errors import NotLeader, PondError
from pondstack.domain.pool_guest import PoolGuest
from pondstack.domain.qos import QosAction, QosMode, Unknown, Verdict
from pondstack.domain.quiet_hours import QuietHours
from pondstack.ledger.qos_records import QosDecision
from pondstack.qos.choice import Decision, choose
from pondstack.qos.judge import Judgement, Limits, judge
from pondstack.qos.pace import Pace, Past, Rates
from pondstack.qos.sensitivity import Sensitivity

LOG = log.getLogger(__name__)

Begin = Callable[[PoolGuest, Mapping[str, Any]], object]
"""Has a VM mitigated, for this evidence; raises a PondError where it cannot begin."""
Key = tuple[str, str, str, str]


def limits_of(group: Any) -> Limits:
    """Return the limits of [qos]."""
    return Limits(group.touched_percent, group.touched_mib, group.pdm_percent, Unknown(group.unknown_sensitivity))


def rates_of(group: Any) -> Rates:
    """Return the rates of [qos]."""
    return Rates(group.host_per_hour, group.rack_per_hour, group.host_at_a_time, group.rack_at_a_time)


class Monitor:
    """For one thread. What was decided last of each VM is read once, and known from then on."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: Database,
        sensitivity: Callable[[], Sensitivity],
        past: Callable[[], Sequence[Past]],
        begin: Begin,
        fence: Callable[[Session], object],
        kept: Callable[[QosDecision], object] = lambda _item: None,
    ) -> None:
        """`past()`: all mitigations that there were; `fence(session)` raises NotLeader for a former leader.

        `kept` hears of each decision that was kept.
        """
        self._conf = conf
        self._database = database
        self._sensitivity = sensitivity
        self._past = past
        self._begin = begin
        self._fence = fence
        self._kept = kept
        self.verdicts: Mapping[str, int] | None = None
        """How many VMs had which verdict in the newest round, None: there was none yet, or the monitor is off."""
        self._known: Mapping[str, Key] | None = None
        self._told: Mapping[str, Any] = {}

    def run(self) -> None:
        """Have a round, unless the monitor is off. Raises Unavailable, NotLeader, BadRequest (quiet hours)."""
        mode = QosMode(self._conf.qos.mode)
        if mode is QosMode.OFF:
            self.verdicts = None
            return
        judgements = self._judge()
        decisions = self._decide(judgements, mode)
        if mode is QosMode.ON:
            # First: of a VM under way nothing is decided any more, and its label must not be lost with this leader.
            self._keep([item for item in decisions if self._is_first(item)], mode)
            decisions = [self._carry_out(item) for item in decisions]
        self._keep(decisions, mode)
        self._say(judgements, decisions, mode)

    def _judge(self) -> list[Judgement]:
        limits, sensitivity = limits_of(self._conf.qos), self._sensitivity()
        fresh = self._conf.qos.fresh_seconds
        guests = self._database.read(lambda session: pool_guests(session, limits.of_pool, fresh))
        return [judge(guest, sensitivity, limits) for guest in guests]

    def _decide(self, judgements: Sequence[Judgement], mode: QosMode) -> list[Decision]:
        group = self._conf.qos
        past = self._past()
        quiet = [QuietHours.parse(text, "[qos] quiet_hours") for text in group.quiet_hours]
        pace = Pace(past, rates_of(group), quiet, datetime.now(UTC))
        return choose(judgements, past, pace, limits_of(group), mode)

    def _carry_out(self, decision: Decision) -> Decision:
        if decision.action is not QosAction.MITIGATE:
            return decision
        item = decision.judgement
        try:
            self._begin(item.guest, item.evidence())
        except NotLeader:
            raise
        except PondError as error:
            LOG.warning("Instance %s is not mitigated yet: %s", item.guest.consumer_uuid, error.message)
            return Decision(item, QosAction.REFUSED, f"{decision.reason}; not begun: {error.message}")
        LOG.info("Instance %s is mitigated: %s", item.guest.consumer_uuid, decision.reason)
        return decision

    def _is_first(self, decision: Decision) -> bool:
        """Return whether nothing is kept of a VM's pool memory yet."""
        guest = decision.judgement.guest
        known = self._decided().get(guest.consumer_uuid)
        return decision.action is QosAction.MITIGATE and (known is None or known[0] != guest.allocation_uuid)

    def _decided(self) -> Mapping[str, Key]:
        """Return what was decided last, by VM."""
        if self._known is None:
            self._known = self._database.read(qos.newest)
        return self._known

    def _keep(self, decisions: Sequence[Decision], mode: QosMode) -> None:
        known = self._decided()
        records = [_record(item, mode) for item in decisions]
        new = [item for item in records if known.get(item.consumer_uuid) != _key(item)]
        if new:
            self._database.write(lambda session: self._write(session, new))
            for item in new:
                self._kept(item)
        self._known = {**known, **{item.consumer_uuid: _key(item) for item in new}}

    def _write(self, session: Session, new: Sequence[QosDecision]) -> None:
        self._fence(session)
        qos.keep(session, new)

    def _say(self, judgements: Sequence[Judgement], decisions: Sequence[Decision], mode: QosMode) -> None:
        self.verdicts = verdicts = Counter(str(item.verdict) for item in judgements)
        actions = Counter(str(item.action) for item in decisions)
        told = {"mode": str(mode), "verdicts": dict(verdicts), "actions": dict(actions)}
        if told != self._told:
            found, done = _counted(verdicts), _counted(actions)
            LOG.info("QoS monitor (%s): %d VMs with pool memory: %s; done: %s", mode, len(judgements), found, done)
            if verdicts[Verdict.UNOBSERVED] and not self._told.get("verdicts", {}).get(str(Verdict.UNOBSERVED)):
                LOG.warning(
                    "%d VMs with pool memory are unobserved, nobody knows whether it hurts them: look at [telemetry] "
                    "of their hosts' agents",
                    verdicts[Verdict.UNOBSERVED],
                )
        self._told = told


def _record(decision: Decision, mode: QosMode) -> QosDecision:
    item = decision.judgement
    guest = item.guest
    return QosDecision(
        guest.consumer_uuid,
        guest.allocation_uuid,
        guest.project_id,
        guest.host,
        str(item.verdict),
        str(decision.action),
        str(mode),
        decision.reason,
        item.expected_percent,
        guest.memory_untouched_mib,
        {**item.evidence(), "judged_at": int(time.time())},
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing"


def _key(item: QosDecision) -> Key:
    return item.allocation_uuid, item.verdict, item.action, item.mode
