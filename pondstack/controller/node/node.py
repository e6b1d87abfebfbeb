"""One controller process: it takes part in the election, stands by with a warm view, and leads when it is elected.

Threads of every controller: `lease` reads the lease and renews it, `follower` follows the journal, `broker` calls this
controller itself through the broker, `report` keeps its entry in the list of controllers and hands the lead over when
the broker does not reach it, `metrics` and a thread of each scrape answer Prometheus; oslo.messaging's for reads. A
promotion, a hand-over and a tear-down each have a thread, so that the lease is renewed meanwhile. What a leader runs
besides is in pondstack.controller.leader.leader.
"""

import threading
from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from oslo_log import log

from pondstack.controller.leader.leader import Leader
from pondstack.controller.node.broker_probe import BrokerProbe, StepAside
from pondstack.controller.node.endpoint import NodeEndpoint
from pondstack.controller.node.follower import Follower
from pondstack.controller.node.metrics import MetricsServer, Scrape
from pondstack.controller.node.migrations import Migrations
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.connection import migration
from pondstack.db.store import controllers, revocations
from pondstack.domain.errors import Conflict, NotFound, NotLeader, PondError
from pondstack.domain.rack import RackView
from pondstack.ha.broker import Peer, successor
from pondstack.ha.candidate import Candidate, Role
from pondstack.ledger.records import ControllerView
from pondstack.rpc import targets
from pondstack.rpc.identity.border import Border
from pondstack.rpc.node_api import NodeAPI

LOG = log.getLogger(__name__)

STOP_SECONDS = 5.0
"""How long a stop waits for each thread; the lease was handed over before."""

RETRY_SECONDS = 0.2
REVOCATION_SECONDS = 2.0
"""Between two looks for credentials that are not to be believed any more."""


class Node:
    """A controller. start() returns at once; wait_until_leading() is for those who need a leader."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.resources = resources = ControllerResources(conf)
        self._conf = conf
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._leader: Leader | None = None
        self._stopping = threading.Event()
        self._children: list[threading.Thread] = []
        self._listed = False
        self._schema_fits = False
        self.broker_probe = BrokerProbe(
            NodeAPI(resources.bus, resources.name).ping,
            resources.broker_terms,
            resources.clock,
            conf.controller.agent_down_seconds,
        )
        self._step_aside = StepAside(
            self.broker_probe, resources.broker_terms, peers=self._peers, hand_over=self._let_lead
        )
        self.candidate = Candidate(
            resources.leadership,
            name=resources.name,
            holder=resources.holder,
            terms=resources.terms,
            clock=resources.clock,
            elected=self._elected,
            deposed=self._deposed,
            gives_way=lambda: self.broker_probe.cut_off,
        )
        self.follower = Follower(resources.database, conf.ha.node_down_seconds, resources.clock)
        self._lease_worker = PeriodicWorker("lease", conf.ha.poll_seconds, self._with_schema(self.candidate.tick))
        self._follow_worker = PeriodicWorker("follower", conf.ha.follow_seconds, self._with_schema(self.follower.poll))
        self._probe_worker = PeriodicWorker("broker", resources.broker_terms.check_seconds, self.broker_probe.probe)
        self._report_worker = PeriodicWorker(
            "report", conf.ha.node_report_seconds, self._with_schema(self._report_and_step_aside)
        )
        self._revocation_worker = None
        if (border := resources.bus.border) is not None:
            read = self._with_schema(lambda: self._read_revocations(border))
            self._revocation_worker = PeriodicWorker("revocations", REVOCATION_SECONDS, read)
        self._server: Any = None
        scrape = Scrape(self._sure_leader, resources.counts)
        self.metrics = MetricsServer(conf.metrics.bind_host, conf.metrics.port, scrape)

    @property
    def leader(self) -> Leader | None:
        """The parts of the leader, None while this controller does not answer as one."""
        return self._leader

    def start(self) -> None:
        """Serve reads, then take part in the election: without the bus a controller is no use as leader."""
        endpoint = NodeEndpoint(
            view=self._view,
            controllers=self.resources.reader.controllers,
            failover=self.failover,
            confirm=Migrations(self.resources.reader, self.resources.placement).confirm,
            revoked=self.resources.bus.revoked,
            down_seconds=self._conf.controller.agent_down_seconds,
        )
        target = targets.node_target(self.resources.name)
        self._server = self.resources.bus.server(target, [endpoint])
        self._server.start()
        self.metrics.start()
        self._follow_worker.start()
        self._probe_worker.start()
        self._report_worker.start()
        if self._revocation_worker is not None:
            self._revocation_worker.start()
        self._lease_worker.start()
        LOG.info("Controller %s stands by as %s", self.resources.name, self.resources.holder)

    def _with_schema(self, task: Callable[[], object]) -> Callable[[], object]:
        """Return the task, which waits for the schema that this code knows.

        A controller newer than the ledger could be elected and never promoted, and would keep others from leading.
        """

        def run() -> None:
            if not self._schema_fits:
                migration.demand_head(self.resources.database)
                self._schema_fits = True
            task()

        return run

    def _sure_leader(self) -> Leader | None:
        """Return the leader unless its lease is over, as it is after a pause of this process, or its epoch is."""
        leader = self._leader
        try:
            self.candidate.check()
        except NotLeader:
            return None
        return leader if leader is not None and leader.epoch == self.candidate.epoch else None

    def wait_until_leading(self, seconds: float) -> bool:
        """Wait until this controller answers as the leader; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(lambda: self._leader is not None, seconds)

    def failover(self, to: str | None) -> None:
        """Hand over to `to` (None: whoever stands by), in the background.

        Raises NotLeader, NotFound (no such controller), Conflict (it cannot lead now).
        """
        self.candidate.check()
        leader = self._leader
        if leader is None:
            raise NotLeader(f"controller {self.resources.name} is being promoted; call again")
        name = self._successor(to)
        LOG.info("Handing over to %s by command", name)
        self._spawn("hand-over", lambda: self._hand_over(leader, name))

    def _successor(self, to: str | None) -> str:
        others = {item.name: item for item in self.resources.reader.controllers() if item.name != self.resources.name}
        standing = sorted(
            (item for item in others.values() if item.role == controllers.STANDBY), key=lambda item: item.lag
        )
        if to is None:
            if not standing:
                raise Conflict("no other controller stands by; start one first")
            return successor(map(_peer, standing), self.resources.broker_terms) or standing[0].name
        if to == self.resources.name:
            raise Conflict(f"controller {to} leads already")
        if to not in others:
            raise NotFound(f"there is no controller {to}; list the controllers")
        if others[to] not in standing:
            raise Conflict(f"controller {to} is {others[to].role}; choose one that stands by")
        if self.resources.broker_terms.reaches(others[to].reached_seconds) is False:
            raise Conflict(f"controller {to} does not reach the message broker; choose one that does")
        return to

    def _hand_over(self, leader: Leader, to: str) -> None:
        """Refuse new requests, let those under way end, end the lease."""
        leader.gate.shut(f"controller {self.resources.name} hands over")
        if not leader.gate.drained(self._conf.ha.drain_seconds):
            LOG.warning("Handing over with requests under way; their clients repeat them")
        try:
            self.candidate.hand_over(to)
        except PondError as error:
            # Whether it happened or not: this leader has shut its gate and is none any more.
            self.candidate.step_down(f"the hand-over failed: {error.message}")

    def _peers(self) -> list[Peer]:
        """Return the other controllers."""
        return [_peer(item) for item in self.resources.reader.controllers() if item.name != self.resources.name]

    def _let_lead(self, epoch: int, name: str) -> None:
        """Hand the lead of `epoch` over in the background, also when the promotion hangs for want of the broker."""

        def work() -> None:
            leader = self._leader
            if leader is not None and leader.epoch == epoch:
                self._hand_over(leader, name)
            else:
                self._give_up(epoch, name)

        self._spawn("hand-over", work)

    def _elected(self, epoch: int) -> None:
        LOG.info("Elected: epoch %d, holder %s", epoch, self.resources.holder)
        self._spawn(f"promotion-{epoch}", lambda: self._promote(epoch))
        self._report_worker.wake()

    def _promote(self, epoch: int) -> None:
        while self.candidate.epoch == epoch and not self._stopping.is_set():
            leader = Leader(
                self.resources,
                self.candidate,
                epoch,
                lambda: self.broker_probe.receiving,
                warm_view=lambda: self.follower.view()[0],
            )
            try:
                leader.open()
            except NotLeader as error:
                LOG.warning("Promotion to epoch %d ends: %s", epoch, error)
                leader.close()
                self.candidate.lost(epoch, error.message)
                return
            except PondError as error:
                LOG.warning("Promotion to epoch %d is tried again: %s", epoch, error)
            except Exception:
                LOG.exception("Promotion to epoch %d failed; somebody else may try", epoch)
                leader.close()
                self._give_up(epoch)
                return
            else:
                if not self._take_up(leader):
                    leader.close()
                return
            leader.close()
            self._stopping.wait(RETRY_SECONDS)

    def _take_up(self, leader: Leader) -> bool:
        with self._changed:
            if self.candidate.epoch != leader.epoch or self._stopping.is_set():
                return False
            self._leader = leader
            self._changed.notify_all()
            return True

    def _give_up(self, epoch: int, to: str = "") -> None:
        if self.candidate.epoch == epoch:
            try:
                self.candidate.hand_over(to)
            except PondError as error:
                self.candidate.step_down(error.message)

    def _deposed(self, reason: str) -> None:
        with self._changed:
            leader, self._leader = self._leader, None
        LOG.warning("Standing by again: %s", reason)
        if leader is not None:
            self._spawn(f"tear-down-{leader.epoch}", leader.close)
        self._report_worker.wake()

    def _view(self) -> tuple[RackView, int]:
        """Return the rack and the leader's epoch: the leader reads what it has just written, the others follow."""
        leader = self._leader
        if leader is not None:
            return leader.reader.rack(), leader.epoch
        return self.follower.view()

    def _report_and_step_aside(self) -> None:
        self._report()
        self._step_aside.run(self.candidate.epoch)

    def _read_revocations(self, border: Border) -> None:
        border.revocations.note(self.resources.database.read(revocations.revocations))

    def _report(self) -> None:
        role = controllers.LEADER if self.candidate.role is Role.LEADER else controllers.STANDBY
        before = self.resources.database.write(
            lambda session: controllers.record(
                session,
                self.resources.name,
                self.resources.holder,
                role=role,
                epoch=self.candidate.epoch or 0,
                followed_sequence=self.follower.sequence,
                reached_seconds=self.broker_probe.seconds,
            )
        )
        self._note_duplicate(before)

    def _note_duplicate(self, before: str) -> None:
        """Say so when another live process has this one's name: messages for one of them would reach the other."""
        if self._listed and before != self.resources.holder:
            LOG.error("%s is named %s too: give each controller its own [controller] name", before, self.resources.name)
        self._listed = True

    def _spawn(self, name: str, task: Any) -> None:
        thread = threading.Thread(target=task, name=name, daemon=True)
        with self._lock:
            self._children = [child for child in self._children if child.is_alive()] + [thread]
        thread.start()

    def stop(self) -> None:
        """Hand the lead over at once, then end: a planned restart costs the others one look at the lease."""
        self._stopping.set()
        leader = self._leader
        if leader is not None:
            self._hand_over(leader, "")
        elif self.candidate.epoch is not None:
            self._give_up(self.candidate.epoch)
        self._lease_worker.stop(STOP_SECONDS)
        self._follow_worker.stop(STOP_SECONDS)
        self._report_worker.stop(STOP_SECONDS)
        self._probe_worker.stop(STOP_SECONDS)
        if self._revocation_worker is not None:
            self._revocation_worker.stop(STOP_SECONDS)
        self._leave()
        self.metrics.stop()
        if self._server is not None:
            self._server.stop()
            self._server.wait()
        for child in list(self._children):
            child.join(STOP_SECONDS)
        self.resources.close()

    def _leave(self) -> None:
        try:
            self.resources.database.write(
                lambda session: controllers.deregister(session, self.resources.name, self.resources.holder)
            )
        except PondError as error:
            LOG.info("The list of controllers does not say that this one ends: %s", error)


def _peer(item: ControllerView) -> Peer:
    return Peer(item.name, item.role == controllers.STANDBY, item.reached_seconds, item.lag)
