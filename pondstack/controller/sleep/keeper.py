"""Goes round the hosts that are put to sleep, asleep or woken, and takes each as far as it goes now.

What is written down before what: a step is, once it is done. A leader that is killed in between does again what changes
nothing when it is done twice.
"""

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from uuid import uuid4

import oslo_messaging
from oslo_log import log

from pondstack.clients.nova import Nova
from pondstack.controller.lending.lenders import call_agent
from pondstack.controller.pool.host_slices import unanswered
from pondstack.controller.sleep.actor import Actor
from pondstack.controller.sleep.observer import Observer
from pondstack.controller.sleep.service_guard import ServiceGuard
from pondstack.domain.deeper_sleep import candidates, choose
from pondstack.domain.errors import Conflict, HostUnusable, NotAligned, NotFound, NotLeader, PondError
from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState, Work
from pondstack.domain.host_sleep_step import Act, Limits, Step, decide, occupied
from pondstack.domain.power import mode_of
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.mitigations import Overtaken
from pondstack.rpc.agent_api import AgentAPI

LOG = log.getLogger(__name__)

DEEPER_LOOK_SECONDS = 60.0
"""Between two looks at all buffers of the rack."""

MOST_STEPS = 8
"""In one round; the next one goes on."""


class SleepKeeper:
    """One leader's. run() is for one thread, the others are thread-safe.

    `changed` hears of each sleep that is in another state; `limits`: [sleep] now; `wakeable`: hosts with a BMC.
    """

    def __init__(
        self,
        ledger: Ledger,
        nova: Nova,
        agents: AgentAPI,
        observer: Observer,
        actor: Actor,
        *,
        limits: Callable[[], Limits],
        executor: Executor,
        changed: Callable[[HostSleep], object] = lambda _item: None,
        wake: Callable[[], object] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
        wakeable: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger, self._nova, self._agents = ledger, nova, agents
        self._observer, self._actor = observer, actor
        self._limits, self._executor = limits, executor
        self._changed, self._wake, self._stopping = changed, wake, stopping
        self._wakeable, self._clock = wakeable, clock
        self._deepens_at = clock()
        self._guard = ServiceGuard(ledger, nova, clock)

    def suspend(
        self, host: str, driver: str, mib: int | None, operation_id: str | None = None, *, disabled_by: str = ""
    ) -> HostSleep:
        """Begin to put a host to sleep; it goes on in the background. A repetition of the operation begins nothing.

        `mib`: what it lends meanwhile, None: all that it can spare. `disabled_by`: the reason with which the caller has
        disabled its compute service, which its waking is to enable. Raises BadRequest, NotAligned, NotFound, Conflict
        (servers are there), HostUnusable (it cannot sleep so), Unavailable.
        """
        operation = operation_id or str(uuid4())
        known = self._ledger.host_sleeps.begun(operation)
        if known is None:
            work = self._checked(host, driver, mib, disabled_by)
            known = self._ledger.host_sleeps.begin(operation, host, driver, work)
            LOG.info("Host %s is to sleep by %s", host, driver)
            self._wake()
        return self._ledger.host_sleeps.get(known)

    def wake(self, host: str, operation_id: str | None = None) -> HostSleep:
        """Have a host wake, or not fall asleep, in the background; raises Conflict: it is awake."""
        uuid = self._ledger.host_sleeps.wake(operation_id or str(uuid4()), host)
        self._wake()
        return self._ledger.host_sleeps.get(uuid)

    def _checked(self, host: str, driver: str, mib: int | None, disabled_by: str) -> Work:
        mode = mode_of(driver)
        self._check_agent(host, driver)
        lending = call_agent(host, lambda: self._agents.get_lending(host)) if mode.serves and mib != 0 else None
        if lending is not None and mib is not None and mib % lending["buffer_mib"]:
            size = lending["buffer_mib"]
            raise NotAligned(f"{mib} MiB is no whole number of buffers of {size} MiB ([lending] buffer_mib)")
        if not mode.serves and (mib or self._ledger.buffers.find(host)):
            raise Conflict(f"host {host} lends memory, or is to, and nobody reaches it by {driver}: reclaim it first")
        service = self._nova.compute_service(host)
        if service is None:
            raise NotFound(f"Nova knows no compute service of host {host}")
        if servers := self._observer.servers(host, service.servers):
            raise Conflict(occupied(host, servers))
        kept = not service.enabled and service.disabled_reason not in (DISABLED_REASON, disabled_by)
        return Work(mib=mib if mode.serves else 0, kept_disabled=kept, disabled_by=disabled_by)

    def _check_agent(self, host: str, driver: str) -> None:
        """Raise HostUnusable where a host says already that it cannot sleep so."""
        try:
            told = self._agents.get_power(host)
        except oslo_messaging.MessagingException as error:
            raise unanswered(host, error, "sleep") from error
        if refusal := told["drivers"].get(driver):
            raise HostUnusable(f"host {host} cannot sleep by {driver}: {refusal}")

    def run(self) -> bool:
        """Do one round; returns whether to do another. Each goes by itself: what one waits for is said with it."""
        unended = self._ledger.host_sleeps.unended()
        for future in [self._executor.submit(self._further, item) for item in unended]:
            future.result()
        self._deepen(unended)
        return self._guard.watch(bool(unended)) or bool(unended)

    def _deepen(self, unended: Sequence[HostSleep]) -> None:
        """Have a host sleep deeper whose memory the rack does not need; one after the other, and seldom looked at."""
        limits = self._limits()
        found = candidates(unended, limits.deeper_driver, limits.deeper_seconds, self._wakeable)
        if not found or self._clock() < self._deepens_at:
            return
        self._deepens_at = self._clock() + DEEPER_LOOK_SECONDS
        item = choose(found, self._ledger.buffers.find())
        if item is None:
            return
        reason = f"nobody uses its memory: it is to sleep by {limits.deeper_driver}"
        try:
            after = self._ledger.host_sleeps.advance(
                item, Step(Act.WAIT, SleepState.WAKING, reason, deeper=limits.deeper_driver)
            )
        except Overtaken as error:
            LOG.debug("The sleep of host %s is looked at again: %s", item.host, error)
            return
        LOG.info("Host %s is %s: %s", item.host, after.state, reason)
        self._changed(after)

    def _further(self, item: HostSleep) -> None:
        try:
            for _ in range(MOST_STEPS):
                after = self._step(item)
                if self._stopping() or after.state is item.state:
                    return
                item = self._ledger.host_sleeps.get(item.uuid)
                if not item.is_open:  # by this step, or the next leader has ended it already
                    return
        except NotLeader:
            raise
        except Overtaken as error:
            LOG.debug("The sleep of host %s is looked at again: %s", item.host, error)
        except PondError as error:
            LOG.debug("The sleep of host %s waits: %s", item.host, error)
            self._note(item, error.message)

    def _step(self, item: HostSleep) -> HostSleep:
        seen = self._observer.look(item)
        step = self._actor.act(item, decide(item, seen, self._limits()), seen)
        after = self._ledger.host_sleeps.advance(item, step)
        if after.state is not item.state:
            LOG.info("Host %s is %s %s", item.host, after.state, after.reason)
            self._changed(after)
        return after

    def _note(self, item: HostSleep, reason: str) -> None:
        """Write down what it waits for; why it is to end otherwise than asked for is not forgotten."""
        try:
            present = self._ledger.host_sleeps.get(item.uuid)
            if not present.work.ending and present.is_open:
                self._ledger.host_sleeps.advance(present, Step(Act.WAIT, present.state, reason))
        except (Overtaken, NotFound) as error:
            LOG.debug("The sleep of host %s has gone on meanwhile: %s", item.host, error)
