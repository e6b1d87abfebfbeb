"""The reconciler: gathers ledger, claims, reports and device tables, decides (rules.py), applies (applier.py)."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from concurrent.futures import Executor
from dataclasses import replace

import oslo_messaging
from oslo_log import log

from pondstack.clients.placement import Placement
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.inventory import InventorySync
from pondstack.controller.reconcile.applier import Applier
from pondstack.controller.reconcile.claims import read_claims
from pondstack.controller.reconcile.findings import Finding, Offline, Severity
from pondstack.controller.reconcile.intake import ReportIntake
from pondstack.controller.reconcile.observation import Claims, Limits, Observation
from pondstack.controller.reconcile.rules.failures import fence_rules
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.db.read.reader import SqlReader
from pondstack.devices.base import Permission
from pondstack.domain.errors import NotLeader, PondError, Unavailable
from pondstack.domain.rack import RackView
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.wire import Report

LOG = log.getLogger(__name__)


class Reconciler:
    """Compares and repairs. One comparison at a time; a hint about one consumer only notes whether it is claimed."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        reader: SqlReader,
        devices: DeviceRegistry,
        agents: AgentAPI,
        placement: Placement | None,
        inventory: InventorySync | None,
        intake: ReportIntake,
        limits: Callable[[], Limits],
        executor: Executor,
        settled: Callable[[], None],
        notify: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._reader = reader
        self._devices = devices
        self._agents = agents
        self._placement = placement
        self._inventory = inventory
        self._intake = intake
        self._limits = limits
        self._executor = executor
        self._settled = settled
        self._clock = clock
        self._applier = Applier(ledger, reader, devices, agents, notify)
        self._lock = threading.Lock()
        self._placement_trouble = ""

    def reconcile_at_promotion(self, report_of: Callable[[str], Report], seconds: float) -> list[Finding]:
        """A new leader's first look: the live agents' reports against ledger and devices, in bounded time.

        `report_of` asks one host, under the new epoch, which its agent remembers from then on. Who has not answered
        after `seconds` is waited for no longer. Placement is not asked and no agent is commanded: that is for the
        rounds that follow. Raises NotLeader, Unavailable.
        """
        with self._lock:
            ends = self._clock() + seconds
            view = self._reader.rack()
            world = Observation(view, limits=self._limits())
            self._ask([name for name in view.hosts if world.host_up(name)], report_of, seconds)

            def look() -> list[Finding]:
                found = decide(self._look(ask_placement=False))
                return [finding for finding in found if not isinstance(finding.action, Offline)]

            findings = self._confirmed(look, lambda hosts: self._ask(hosts, report_of, max(0.0, ends - self._clock())))
            self._apply(findings)
            return findings

    def run(self) -> list[Finding]:
        """Do one round: find, confirm by fresh reports, repair; return the findings. Raises NotLeader, Unavailable."""
        with self._lock:
            self._ledger.renew()
            self._devices.check({uuid: detail.pool.state for uuid, detail in self._reader.rack().pools.items()})
            self._note_claims(self._reader.rack())
            findings = self._confirmed(lambda: decide(self._look()), self._ask_reports)
            self._apply(findings)
            self._settled()
            return findings

    def audit(self, repair: bool) -> list[dict[str, str]]:
        """Compare with fresh reports of all live hosts; with `repair` apply everything, the operator's actions too."""
        with self._lock:
            view = self._reader.rack()
            self._devices.check({uuid: detail.pool.state for uuid, detail in view.pools.items()})
            world = Observation(view, limits=self._limits())
            heard = self._ask_reports([name for name in view.hosts if world.host_up(name)])
            self._note_claims(self._reader.rack())
            findings = [_if_heard(finding, heard) for finding in decide(self._look())]
            findings += self._placement_findings()
            outcomes = self._apply(findings, operator=True) if repair else {}
            self._settled()
        return [_render(finding, outcomes.get(finding.key)) for finding in findings]

    def fence(self, host: str) -> None:
        """Have the devices keep a fenced host out now, beside the rounds, which go on trying where one does not."""
        self._apply(fence_rules(Observation(self._reader.rack(), limits=self._limits()), host))
        self._settled()

    def claimed_mib(self) -> int | None:
        """Return all that Placement's consumers hold of our pools, in MiB; None when Placement cannot tell."""
        claims = self._claims(self._reader.rack())
        return None if claims is None else sum(mib for held in claims.pools.values() for mib in held.values())

    def hint(self, consumer_uuid: str) -> None:
        """Somebody says that this consumer changed: note sooner whether it is still claimed. Raises NotLeader."""
        view = self._reader.rack()
        if any(aged.item.consumer_uuid == consumer_uuid for aged in view.allocations.values()):
            self._note_claims(view, consumer_uuid)
            self._settled()

    @staticmethod
    def _confirmed(look: Callable[[], list[Finding]], ask: Callable[[Iterable[str]], set[str]]) -> list[Finding]:
        """Return what is found twice, the second time at fresh reports: what was only under way is in order by then.

        A host that `ask` did not hear of keeps its old report, which may have been on its way for long: what rests on
        it is told, and nothing is done about it.
        """
        findings = look()
        if not any(finding.action for finding in findings):
            return findings
        heard = ask({finding.host for finding in findings if finding.action and finding.host})
        again = {finding.key: _if_heard(finding, heard) for finding in look()}
        return [again[finding.key] for finding in findings if finding.key in again]

    def _look(self, ask_placement: bool = True) -> Observation:
        """Look at everything. The ledger comes last, so that all other sources are older than its ages tell."""
        before = self._reader.rack()
        claims = self._claims(before) if ask_placement else None
        started = self._clock()
        permissions = self._permissions(before)
        view = self._reader.rack()
        spread, failing = self._clock() - started, self._devices.failing()
        return Observation(view, claims, permissions, self._limits(), spread_seconds=spread, failing=failing)

    def _claims(self, view: RackView, consumer_uuid: str | None = None) -> Claims | None:
        if self._placement is None:
            return None
        hosts = {
            aged.item.host for aged in view.allocations.values() if consumer_uuid in (None, aged.item.consumer_uuid)
        }
        try:
            claims = read_claims(self._placement, view, sorted(hosts))
        except Unavailable as error:
            if not self._placement_trouble:
                LOG.warning("Nothing is taken for unclaimed until Placement answers: %s", error)
            self._placement_trouble = str(error)
            return None
        if self._placement_trouble:
            LOG.info("Placement answers again")
        self._placement_trouble = ""
        return claims

    def _note_claims(self, view: RackView, consumer_uuid: str | None = None) -> None:
        """Write down since when an allocation is unclaimed, only where that changes."""
        world = Observation(view, self._claims(view, consumer_uuid), limits=self._limits())
        if world.claims is None:
            return
        claimed, unclaimed = [], []
        for uuid, aged in view.allocations.items():
            if consumer_uuid not in (None, aged.item.consumer_uuid):
                continue
            if world.claimed[uuid] and aged.unclaimed_seconds is not None:
                claimed.append(uuid)
            elif not world.claimed[uuid] and aged.unclaimed_seconds is None:
                unclaimed.append(uuid)
        self._ledger.slices.mark_claims(claimed, unclaimed)

    def _permissions(self, view: RackView) -> Mapping[str, Mapping[int, Permission]]:
        tables = {}
        for uuid in view.pools:
            try:
                tables[uuid] = self._devices.get(uuid).permissions()
            except PondError as error:
                LOG.debug("No permission table of pool %s: %s", uuid, error)
        return tables

    def _ask_reports(self, hosts: Iterable[str]) -> set[str]:
        return self._ask(hosts, lambda host: self._agents.report(host, epoch=self._ledger.epoch), None)

    def _ask(self, hosts: Iterable[str], report_of: Callable[[str], Report], seconds: float | None) -> set[str]:
        """Take over the reports of some hosts, as many as come within `seconds`; return whose they are."""

        def ask(host: str) -> str | None:
            try:
                self._intake.receive(report_of(host))
            except NotLeader:
                raise
            except (PondError, oslo_messaging.MessagingException) as error:
                LOG.warning("The agent of %s gave no report: %s", host, error)
                return None
            return host

        done, late = futures.wait([self._executor.submit(ask, host) for host in sorted(hosts)], seconds)
        heard = {host for future in done if (host := future.result()) is not None}
        if late:
            LOG.warning("%d agents have not reported within %.3g s and are looked at later", len(late), seconds)
        return heard

    def _apply(self, findings: Iterable[Finding], operator: bool = False) -> dict[tuple[str, str], str]:
        outcomes: dict[tuple[str, str], str] = {}
        done = set()
        for finding in findings:
            if finding.action is None or (finding.operator and not operator):
                continue
            if finding.action not in done:
                done.add(finding.action)
                outcomes[finding.key] = self._applier.apply(finding)
        return outcomes

    def _placement_findings(self) -> Iterable[Finding]:
        """Return whether Placement could be asked, and where its inventory differs."""
        if self._placement is None:
            detail = "[placement] enabled is off: claims are not checked, no inventory is kept"
            yield Finding("placement_disabled", Severity.INFO, "placement", detail)
        elif self._placement_trouble:
            yield Finding("placement_unreachable", Severity.WARNING, "placement", self._placement_trouble)
        elif self._inventory is not None:
            for uuid, detail in self._inventory.differences(self._reader.rack()).items():
                yield Finding("inventory_differs", Severity.WARNING, f"pool {uuid}", detail)


def _if_heard(finding: Finding, heard: set[str]) -> Finding:
    """Return a finding, without its action when its evidence is the report of a host that was not heard of."""
    return finding if finding.host is None or finding.host in heard else replace(finding, action=None)


def _render(finding: Finding, outcome: str | None) -> dict[str, str]:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "subject": finding.subject,
        "detail": finding.detail,
        "action": outcome if outcome is not None else str(finding.action or ""),
    }
