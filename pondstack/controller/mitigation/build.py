"""Joins what a leader has for mitigations: the mitigator, its thread, its RPC endpoint."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from oslo_log import log

from pondstack.controller.gate import Gate
from pondstack.controller.mitigation.endpoint import MitigationEndpoint
from pondstack.controller.mitigation.mitigator import Mitigator
from pondstack.controller.pool.split_service import SplitService
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.domain.errors import Conflict, PondError
from pondstack.domain.mitigation import ENDED, Mitigation, MitigationMethod, MitigationTrigger
from pondstack.domain.mitigation_step import Limits
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI

LOG = log.getLogger(__name__)

STOP_SECONDS = 60.0


class Mitigations:
    """Those of one epoch. `mitigator` None: there is no Placement, and nothing is mitigated."""

    def __init__(
        self,
        resources: ControllerResources,
        ledger: Ledger,
        agents: AgentAPI,
        executor: Executor,
        splits: SplitService,
        gate: Gate,
    ) -> None:
        self._group = resources.conf.mitigation
        self._reader, self._counts = resources.reader, resources.counts
        self._ledger = ledger
        self._looks = self._any = True
        self._stopping = False
        self._worker = PeriodicWorker("mitigations", self._group.interval_seconds, self._round)
        self.mitigator: Mitigator | None = None
        if resources.placement is not None and resources.servers is not None:
            self.mitigator = Mitigator(
                ledger,
                resources.servers,
                resources.placement,
                agents,
                lambda consumer: resources.reader.allocations(consumer_uuid=consumer),
                limits=self._limits,
                most=lambda: (self._group.max_per_host, self._group.max_per_rack),
                executor=executor,
                changed=self._count,
                corrected=splits.corrected,
                wake=self._wake,
                stopping=lambda: self._stopping,
            )
        self.endpoint = MitigationEndpoint(mitigator=self._present, reader=resources.reader, gate=gate)

    def begin(
        self,
        consumer_uuid: str,
        *,
        trigger: MitigationTrigger,
        forced: bool = False,
        method: MitigationMethod | None = None,
        evidence: Mapping[str, Any] | None = None,
        operation_id: str | None = None,
    ) -> Mitigation:
        """Begin to mitigate a server; see Mitigator.begin."""
        return self._present().begin(
            consumer_uuid, trigger=trigger, forced=forced, method=method, evidence=evidence, operation_id=operation_id
        )

    def _present(self) -> Mitigator:
        if self.mitigator is None:
            raise Conflict("[placement] enabled is off, and a mitigation claims memory there")
        return self.mitigator

    def unended(self) -> Sequence[Mitigation]:
        """Return those that are open; the database is asked only while there may be some."""
        return self._ledger.mitigations.unended() if self.mitigator is not None and self._any else ()

    def start(self) -> None:
        """Go on with what former leaders began."""
        if self.mitigator is not None:
            self._worker.start()

    def stop(self) -> None:
        """End after the step in hand."""
        self._stopping = True
        self._worker.stop(STOP_SECONDS)

    def _count(self, item: Mitigation) -> None:
        """Count a mitigation that came to another state, and how long an ended one took by the database's clock."""
        self._counts.mitigation_changed(item.state, item.method)
        if item.state not in ENDED:
            return
        try:
            found = self._reader.mitigation(item.uuid)
        except PondError as error:
            LOG.info("How long mitigation %s took is not counted: %s", item.uuid, error)
        else:
            seconds = (found.ended_at or found.updated_at) - found.created_at
            self._counts.mitigation_ended(item.state, item.method, max(0.0, seconds))

    def _wake(self) -> None:
        self._looks = self._any = True
        self._worker.wake()

    def _round(self) -> None:
        """Look, unless none is open: all of this epoch's have begun here."""
        if self.mitigator is None or not self._looks:
            return
        self._looks = False
        still = True
        try:
            still = self.mitigator.run()
        finally:
            self._looks = self._any = self._looks or still

    def _limits(self) -> Limits:
        group = self._group
        return Limits(
            idle_seconds=group.idle_seconds,
            copy_seconds=group.copy_seconds,
            view_seconds=group.view_seconds,
            retry_seconds=group.retry_seconds,
            retries=group.retries,
        )
