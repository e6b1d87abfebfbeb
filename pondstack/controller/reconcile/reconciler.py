"""The reconciler: observes ledger, claims, reports and device tables, decides (rules/), applies (applier.py)."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Executor
from dataclasses import replace

import oslo_messaging
from oslo_log import log

from pondstack.clients.placement import Placement
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.inventory import LendingInventory
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.inventory import InventorySync
from pondstack.controller.pool.remover import Remover
from pondstack.controller.reconcile.actions import is_for_rounds
from pondstack.controller.reconcile.applier import Applier
from pondstack.controller.reconcile.claims import read_claims
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.holders import Claims
from pondstack.controller.reconcile.intake import ReportIntake
from pondstack.controller.reconcile.leftovers import find_leftovers
from pondstack.controller.reconcile.observation import Limits, Observation, disks_of
from pondstack.controller.reconcile.rules.failures import fence_rules
from pondstack.controller.reconcile.rules.rules import decide
from pondstack.controller.reconcile.swap_disks import UnclaimedDisks
from pondstack.db.read.reader import SqlReader
from pondstack.devices.base import Permission
from pondstack.domain.errors import Conflict, NotLeader, PondError, Unavailable
from pondstack.domain.lending import RemoteAllocation
from pondstack.domain.lent_memory import AgedLoan
from pondstack.domain.mitigation import Mitigation
from pondstack.domain.model import Allocation
from pondstack.domain.rack import AgedAllocation, RackView
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
        remover: Remover,
        lent_inventory: LendingInventory | None = None,
        remote_claims: RemoteClaims | None = None,
        notify: Callable[[], object] = lambda: None,
        mitigations: Callable[[], Sequence[Mitigation]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._reader = reader
        self._devices = devices
        self._agents = agents
        self._placement = placement
        self._inventory = inventory
        self._lent_inventory = lent_inventory
        self._remote_claims = remote_claims
        self._intake = intake
        self._limits = limits
        self._mitigations = mitigations
        self._executor = executor
        self._settled = settled
        self._clock = clock
        self._unclaimed_disks = UnclaimedDisks(clock)
        self._applier = Applier(ledger, reader, devices, agents, remover, notify)
        self._lock = threading.Lock()
        self._auditing = threading.Lock()
        self._placement_trouble = ""

    def reconcile_at_promotion(self, report_of: Callable[[str], Report], seconds: float) -> list[Finding]:
        """Compare the live agents' reports with ledger and devices, and repair, in bounded time, before requests.

        `report_of` gets one host's report under the new epoch, which its agent remembers from then on. Reports that
        have not come after `seconds` are not waited for. Placement is not asked, no agent is commanded, and nobody is
        taken for silent, since this leader may be the one that hears nothing: the rounds that follow do that. Raises
        NotLeader, Unavailable.
        """
        with self._lock:
            ends = self._clock() + seconds
            view = self._reader.rack()
            observation = Observation(view, limits=self._limits())
            self._collect_reports([name for name in view.hosts if observation.host_up(name)], report_of, seconds)

            def find() -> list[Finding]:
                found = decide(self._observe(ask_placement=False))
                return [finding for finding in found if not is_for_rounds(finding.action)]

            findings = self._confirmed(
                find, lambda hosts: self._collect_reports(hosts, report_of, max(0.0, ends - self._clock()))
            )
            self._apply(findings)
            return findings

    def run(self) -> list[Finding]:
        """Do one round: find, confirm by fresh reports, repair; return the findings. Raises NotLeader, Unavailable."""
        with self._lock:
            self._ledger.renew()
            self._devices.check({uuid: detail.pool.state for uuid, detail in self._reader.rack().pools.items()})
            self._note_claims(self._reader.rack(lent=True))
            findings = self._confirmed(lambda: decide(self._observe()), self._refresh_reports)
            self._apply(findings)
            self._settled()
            return findings

    def audit(self, repair: bool) -> list[dict[str, str]]:
        """Compare with fresh reports of all live hosts; with `repair` apply everything, the operator's actions too.

        Raises Conflict while another audit is under way: each keeps a thread of its caller's, for minutes at worst.
        """
        if not self._auditing.acquire(blocking=False):
            raise Conflict("an audit is under way; repeat the request when it has ended")
        try:
            return self._audit(repair)
        finally:
            self._auditing.release()

    def _audit(self, repair: bool) -> list[dict[str, str]]:
        with self._lock:
            view = self._reader.rack()
            self._devices.check({uuid: detail.pool.state for uuid, detail in view.pools.items()})
            observation = Observation(view, limits=self._limits())
            answered = self._refresh_reports([name for name in view.hosts if observation.host_up(name)])
            self._note_claims(self._reader.rack(lent=True))
            findings = [_if_answered(finding, answered) for finding in decide(self._observe())]
            findings += self._placement_findings(repair)
            outcomes = self._apply(findings, operator=True) if repair else {}
            self._settled()
        return [_render(finding, outcomes.get(finding.key)) for finding in findings]

    def fence(self, host: str) -> None:
        """Have the devices keep a fenced host out now; the rounds go on where a device does not answer."""
        self._apply(fence_rules(Observation(self._reader.rack(), limits=self._limits()), host))
        self._settled()

    def claimed_mib(self) -> int | None:
        """Return all that Placement's consumers hold of our pools, in MiB; None when Placement does not answer."""
        claims = self._claims(self._reader.rack())
        return None if claims is None else sum(mib for held in claims.pools.values() for mib in held.values())

    def hint(self, consumer_uuid: str) -> None:
        """Note at once whether a consumer is still claimed: a notification says that it changed. Raises NotLeader."""
        view = self._reader.rack(lent=True)
        if any(item.consumer_uuid == consumer_uuid for item in _held(view)):
            self._note_claims(view, consumer_uuid)
            self._settled()

    @staticmethod
    def _confirmed(find: Callable[[], list[Finding]], refresh: Callable[[Iterable[str]], set[str]]) -> list[Finding]:
        """Return what is found twice, the second time at fresh reports: what was only under way is in order by then.

        A host whose report `refresh` did not get keeps its old one, which may have been under way for long: a finding
        that rests on it is returned without its action.
        """
        findings = find()
        if not any(finding.action for finding in findings):
            return findings
        answered = refresh({finding.host for finding in findings if finding.action and finding.host})
        again = {finding.key: _if_answered(finding, answered) for finding in find()}
        return [again[finding.key] for finding in findings if finding.key in again]

    def _observe(self, ask_placement: bool = True) -> Observation:
        """Read all sources. The ledger is read last, so that the others are older than its ages say."""
        before = self._reader.rack(lent=True)
        claims = self._claims(before) if ask_placement else None
        started = self._clock()
        permissions = self._permissions(before)
        view = self._reader.rack(lent=True)
        spread, failing = self._clock() - started, self._devices.failing()
        return Observation(
            view,
            claims,
            permissions,
            self._limits(),
            spread_seconds=spread,
            failing=failing,
            mitigations=self._mitigations(),
            unclaimed_disks=self._unclaimed_disks.seconds(),
        )

    def _claims(self, view: RackView, consumer_uuid: str | None = None) -> Claims | None:
        if self._placement is None:
            return None
        places = [*((item.host, item.consumer_uuid) for item in _held(view)), *disks_of(view)]
        hosts = {host for host, uuid in places if consumer_uuid in (None, uuid)}
        try:
            claims = read_claims(self._placement, view, sorted(hosts), self._remote_claims)
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
        claims, open_ones = self._claims(view, consumer_uuid), self._mitigations()
        observation = Observation(view, claims, limits=self._limits(), mitigations=open_ones)
        if observation.claims is None:
            return
        if consumer_uuid is None:
            self._unclaimed_disks.note(observation.disk_claimed)
        self._ledger.slices.mark_claims(*_changed(view.allocations, observation.claimed, consumer_uuid))
        self._ledger.loans.mark_claims(*_changed(view.lent.loans, observation.loan_claimed, consumer_uuid))

    def _permissions(self, view: RackView) -> Mapping[str, Mapping[int, Permission]]:
        tables = {}
        for uuid in view.pools:
            try:
                tables[uuid] = self._devices.get(uuid).permissions()
            except PondError as error:
                LOG.debug("No permission table of pool %s: %s", uuid, error)
        return tables

    def _refresh_reports(self, hosts: Iterable[str]) -> set[str]:
        return self._collect_reports(hosts, lambda host: self._agents.report(host, epoch=self._ledger.epoch), None)

    def _collect_reports(
        self, hosts: Iterable[str], report_of: Callable[[str], Report], seconds: float | None
    ) -> set[str]:
        """Take over the reports of hosts that answer within `seconds`; return these hosts.

        Not those of which a report with a higher number is known: it came unasked, and nothing is done on it alone.
        """

        def collect(host: str) -> str | None:
            try:
                newest = self._intake.receive_answer(host, report_of(host))
            except NotLeader:
                raise
            except (PondError, oslo_messaging.MessagingException) as error:
                LOG.warning("The agent of %s gave no report: %s", host, error)
                return None
            return host if newest else None

        done, late = futures.wait([self._executor.submit(collect, host) for host in sorted(hosts)], seconds)
        answered = {host for future in done if (host := future.result()) is not None}
        if late:
            LOG.warning("%d agents have not reported within %.3g s and are looked at later", len(late), seconds)
        return answered

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

    def _placement_findings(self, repair: bool) -> Iterable[Finding]:
        """Return whether Placement could be asked, where its inventory differs, and what is left of what is gone.

        With `repair` what was to be written in a moment is written first.
        """
        if self._placement is None:
            detail = "[placement] enabled is off: claims are not checked, no inventory is kept"
            yield Finding("placement_disabled", Severity.INFO, "placement", detail)
        elif self._placement_trouble:
            yield Finding("placement_unreachable", Severity.WARNING, "placement", self._placement_trouble)
        elif self._inventory is not None:
            if repair:
                self._inventory.refresh(self._reader.rack)
            for uuid, detail in self._inventory.differences(self._reader.rack()).items():
                yield Finding("inventory_differs", Severity.WARNING, f"pool {uuid}", detail)
            if self._lent_inventory is not None and (detail := self._lent_inventory.difference() or ""):
                self._lent_inventory.forget()
                yield Finding("inventory_differs", Severity.WARNING, "lent memory", detail)
            yield from find_leftovers(self._placement, Observation(self._reader.rack(), limits=self._limits()))


def _held(view: RackView) -> list[Allocation | RemoteAllocation]:
    """Return all allocations that Placement may have a claim of."""
    loans = [aged.item for aged in view.lent.loans.values() if aged.item.guaranteed]
    return [*(aged.item for aged in view.allocations.values()), *loans]


def _changed(
    known: Mapping[str, AgedAllocation] | Mapping[str, AgedLoan],
    claimed: Mapping[str, bool],
    consumer_uuid: str | None,
) -> tuple[list[str], list[str]]:
    """Return which allocations of a consumer, or of all, are claimed again, and which are no more."""
    mine = {uuid: aged for uuid, aged in known.items() if consumer_uuid in (None, aged.item.consumer_uuid)}
    return (
        [uuid for uuid, aged in mine.items() if claimed[uuid] and aged.unclaimed_seconds is not None],
        [uuid for uuid, aged in mine.items() if not claimed[uuid] and aged.unclaimed_seconds is None],
    )


def _if_answered(finding: Finding, answered: set[str]) -> Finding:
    """Return a finding, without its action when its evidence is the report of a host that did not answer."""
    return finding if finding.host is None or finding.host in answered else replace(finding, action=None)


def _render(finding: Finding, outcome: str | None) -> dict[str, str]:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "subject": finding.subject,
        "detail": finding.detail,
        "action": outcome if outcome is not None else str(finding.action or ""),
    }
