"""The virt driver's calls of pondstack-agent: find, attach, release, each bounded in time.

Three kinds of failure are told apart. An agent that *answers* "unavailable" (the controller is away) is asked again,
with the same operation id, until attach_timeout_seconds. One that answers that slices are *on their way back* is asked
again until shortage_wait_seconds: it waits here, in the thread that builds the guest, and nobody else is held up. An
agent that is *silent* gets two tries of half of agent_monitor_seconds each: a lost answer (broker restarted) is
covered, and a dead agent costs seconds, not minutes.

When nova-compute starts, its host may be booting: a guest that is started again has no other host to go to, so it waits
for a silent agent or controller until agent_start_timeout_seconds after that start.
"""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import nova.conf
import oslo_messaging
import tenacity
from nova import exception
from nova.i18n import _
from oslo_log import log as logging

from pondstack.conf import compute as conf
from pondstack.domain.errors import (
    BufferShortage,
    DeviceFailed,
    HostUnusable,
    InUse,
    NotFound,
    PermissionHeld,
    PondError,
    PoolFragmented,
    PoolShortage,
    Refused,
    SlicesReturning,
    Unavailable,
    Unclaimed,
)
from pondstack.domain.requests import AssignRequest
from pondstack.rpc import transport as rpc
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.identity.revocations import Revocations
from pondstack.rpc.wire import Attachment
from pondstack_nova.breaker import Breaker
from pondstack_nova.compute.claims import PoolClaim
from pondstack_nova.compute.retry_budget import SILENT_TRIES, RetryBudget, worth_another_try

CONF = nova.conf.CONF
conf.register_opts(CONF)
LOG = logging.getLogger(__name__)

TELL_SECONDS = 30.0
"""How often the log says for what the guests of a host that boots wait."""

IN_USE_SECONDS = 10.0
"""How long a release waits for the guest's last process to go: libvirt's migration ends before QEMU does."""

SILENT_SECONDS = 30.0
"""An agent that was silent again and again is asked for guests that may have nothing again after this long."""

REVOCATIONS = Revocations()
"""Whose answers this process does not believe any more; the own host's agent knows."""

Answer = TypeVar("Answer")
Bus = oslo_messaging.MessagingException

_FOR_TENANTS: tuple[tuple[type[Exception], str], ...] = (
    (PoolFragmented, "no free pool memory of the shape that this move needs"),
    (PoolShortage, "there is too little free pool memory"),
    (SlicesReturning, "pool memory that is on its way back did not come in time"),
    (BufferShortage, "there is too little lent memory"),
    (Unclaimed, "it is not claimed in Placement"),
    (HostUnusable, "the host cannot use it"),
    (InUse, "pool memory is still in use"),
    (DeviceFailed, "the pool device failed"),
    (Unavailable, "the memory service does not answer"),
    (Bus, "the memory service does not answer"),
)
"""What the owner of an instance reads in its fault: no host, pool or allocation, which only the operator may know."""

_NEXT_STEP: tuple[tuple[type[Exception], str], ...] = (
    (Bus, "start pondstack-agent there, and look at its log and at RabbitMQ"),
    (PoolFragmented, "wait until slices come back, or migrate the guest cold"),
    (PoolShortage, "look at `openstack memory pool show`; slices may still be on their way back"),
    (BufferShortage, "look at `openstack memory lender list`; have more hosts lend: `openstack memory host delegate`"),
    (Unclaimed, "schedule it again, without forcing a host"),
    (HostUnusable, "look at `openstack memory host show`"),
    (PermissionHeld, "run `openstack memory audit`"),
    (DeviceFailed, "look at the pool device and at `openstack memory pool show`"),
    (
        SlicesReturning,
        "see in `openstack memory pool show` how long slices need to come back, and raise [pondstack] "
        "shortage_wait_seconds or [controller] free_buffer_max_percent",
    ),
    (Unavailable, "start pondstack-controller and look at its log"),
)


class PoolMemoryUnavailable(exception.ComputeResourcesUnavailable):
    """Pool memory could not be attached here; Nova tries another host.

    Nova shows its text to the owner of the instance. `details` is the operator's: host, pool, what the agent said.
    """

    msg_fmt = _("Pool memory is not available: %(reason)s")

    def __init__(self, *, reason: str, details: str = "") -> None:
        super().__init__(reason=reason)
        self.details = details or reason


def explain(error: Exception) -> str:
    """Return what went wrong and what to do next, without a traceback of the other end."""
    if isinstance(error, PondError):
        text = error.message
    elif isinstance(error, Bus) and not isinstance(error, oslo_messaging.RemoteError):
        text = "pondstack-agent does not answer"
    else:
        text = f"{type(error).__name__}: {error}"
    step = next((step for kind, step in _NEXT_STEP if isinstance(error, kind)), "look at pondstack-agent's log")
    return f"{text}. Next: {step}"


def unavailable(
    error: Exception, where: str, waited: str = "", kind: type[PoolMemoryUnavailable] = PoolMemoryUnavailable
) -> PoolMemoryUnavailable:
    """Return the error for Nova, which shows its text to the owner of the instance; the whole story is logged."""
    details = f"{where}: {explain(error)}{waited}"
    LOG.warning(kind.msg_fmt, {"reason": details})
    told = next((text for kind, text in _FOR_TENANTS if isinstance(error, kind)), "it could not be attached")
    code = f" ({error.code})" if isinstance(error, PondError) else ""
    return kind(reason=f"{told}{code}{waited}", details=details)


def make_api(timeout_seconds: int | None = None) -> AgentAPI:
    """Return a client of the agents as nova.conf says; `timeout_seconds`: with less patience."""
    monitor_seconds = max(1, CONF.pondstack.agent_monitor_seconds // SILENT_TRIES)
    return AgentAPI(
        rpc.get_transport(
            CONF, Identity(Role.COMPUTE, CONF.host), CONF.pondstack.transport_url, revocations=REVOCATIONS
        ),
        timeout_seconds=float(timeout_seconds or CONF.pondstack.attach_timeout_seconds),
        monitor_seconds=min(monitor_seconds, timeout_seconds or monitor_seconds),
    )


class PoolAttachments:
    """What guests hold of pools, on this host or (for migrations) another one. Thread-safe."""

    def __init__(
        self,
        api: Callable[[], AgentAPI] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._make_api = api or make_api
        self._api: AgentAPI | None = None
        self._lock = threading.Lock()
        self._clock = clock
        self._sleep = sleep or pause
        self._patient_until = clock()
        self._breakers: dict[str, Breaker] = {}

    def nova_compute_started(self) -> None:
        """Count agent_start_timeout_seconds from now, for calls with `patient`."""
        self._patient_until = self._clock() + CONF.pondstack.agent_start_timeout_seconds

    def find(self, host: str, consumer_uuid: str, *, patient: bool = False) -> Attachment | None:
        """Return what a guest holds on a host; raises PoolMemoryUnavailable.

        `patient`: the guest is started again, and waits for an agent that may be about to start.
        """
        try:
            return self.insist(host, lambda api: api.get_attachment(host, consumer_uuid=consumer_uuid), patient)
        except (PondError, Bus) as error:
            where = f"host {host}, consumer {consumer_uuid}"
            raise unavailable(error, where, self.waited(error, patient)) from error

    def hear_of_revocations(self, own_host: str) -> None:
        """Have this host's agent say whose answers are not to be believed any more, before another host is asked.

        Without an answer, as of an agent of the former release, it is what was known before. An agent that was silent
        again and again is not asked: guests without pool memory move to hosts that have none.
        """
        breaker = self.breaker(own_host)
        if not breaker.admit():
            return
        try:
            REVOCATIONS.learn(self.client().get_revoked(own_host))
        except (PondError, Bus) as error:
            LOG.debug("pondstack-agent on %s does not say who is shut out: %s", own_host, explain(error))
            if isinstance(error, Bus) and not isinstance(error, oslo_messaging.RemoteError):
                breaker.failed()
                return
        breaker.succeeded()

    def look_at_source(self, host: str, consumer_uuid: str) -> Attachment | None:
        """Return as look() what a guest holds on the host that it is about to leave; raises PoolMemoryUnavailable.

        It does where that host's agent has something and does not tell this host of it: it would be left behind.
        """
        try:
            return self._look(host, consumer_uuid)
        except (Refused, Unavailable) as error:
            raise unavailable(error, f"host {host}, consumer {consumer_uuid}") from error

    def look(self, host: str, consumer_uuid: str) -> Attachment | None:
        """Return what a guest that claims nothing holds on a host all the same; None also without an answer.

        One try, and none where the agent was silent again and again: a host may have no agent, and such guests do not
        depend on it. What is held and not claimed, the controller's reconciler finds, too.
        """
        try:
            return self._look(host, consumer_uuid)
        except PondError:
            return None

    def _look(self, host: str, consumer_uuid: str) -> Attachment | None:
        breaker = self.breaker(host)
        if not breaker.admit():
            return None
        try:
            found = self.client().get_attachment(host, consumer_uuid=consumer_uuid)
        except (PondError, Bus) as error:
            LOG.debug("Whether %s holds pool memory on %s is not known: %s", consumer_uuid, host, explain(error))
            if isinstance(error, PondError):
                raise
            breaker.failed()
            return None
        breaker.succeeded()
        return found

    def attach(
        self, host: str, consumer_uuid: str, claim: PoolClaim, *, patient: bool = False, **wishes: Any
    ) -> Attachment:
        """Attach what is claimed, from the first of its pools that the host reaches; raises PoolMemoryUnavailable.

        `patient`: as for find. `wishes`: guest_mib, project_id, user_id, shape, source, as AssignRequest has them. A
        failure is undone as far as the agent can be reached; what is left, the controller's reconciler releases.
        """
        for pool_uuid in claim.pools:
            try:
                request = AssignRequest(consumer_uuid, host, pool_uuid, claim.pool_mib, **wishes)
                attachment = self._attach_once(request, patient)
            except (HostUnusable, NotFound) as error:  # an evacuated guest may still claim its old host's pool, too
                failure, failed_pool = error, pool_uuid
                continue
            except (PondError, Bus) as error:
                raise self._failed(host, consumer_uuid, pool_uuid, claim, error, patient) from error
            LOG.info("Attached %d MiB of %s to %s on %s", claim.pool_mib, attachment.pool_name, consumer_uuid, host)
            return attachment
        raise self._failed(host, consumer_uuid, failed_pool, claim, failure, patient) from failure

    def await_guest(self, host: str, consumer_uuid: str) -> None:
        """Have a guest awaited whose slices are handed over to a host; raises PoolMemoryUnavailable."""
        try:
            self.insist(host, lambda api: api.await_guest(host, consumer_uuid=consumer_uuid), False)
        except (PondError, Bus) as error:
            raise unavailable(error, f"host {host}, consumer {consumer_uuid}") from error

    def _attach_once(self, request: AssignRequest, patient: bool) -> Attachment:
        operation_id = str(uuid.uuid4())
        return self.insist(request.host, lambda api: api.attach(operation_id, request), patient)

    def release(self, host: str, consumer_uuid: str) -> bool:
        """Give back what a guest that is gone holds on a host; True when the agent did it or had nothing.

        Never raises: the end of a guest does not wait for us. What fails is logged; the reconciler gets it later. An
        agent that was silent again and again is not asked: every guest ends here, whether it held something or not.
        """
        breaker = self.breaker(host)
        if not breaker.admit():
            LOG.info(
                "pondstack-agent on %s is silent: it was not asked to release pool memory of %s", host, consumer_uuid
            )
            return False
        operation_id = str(uuid.uuid4())
        try:
            released = self.while_it_raises(
                InUse, lambda: self.client().detach(host, operation_id=operation_id, consumer_uuid=consumer_uuid)
            )
        except (PondError, Bus) as error:
            if isinstance(error, Bus):
                breaker.failed()
            LOG.warning(
                "What %s may hold of a pool on %s was not released: %s. Its slices come back once the agent answers",
                consumer_uuid,
                host,
                explain(error),
            )
            return False
        breaker.succeeded()
        if released:
            LOG.info("Released the pool memory of %s on %s", consumer_uuid, host)
        return True

    def _failed(
        self, host: str, consumer_uuid: str, pool_uuid: str, claim: PoolClaim, error: Exception, patient: bool
    ) -> PoolMemoryUnavailable:
        if not isinstance(error, Bus):  # a silent agent stays silent; Nova's own cleanup and the reconciler ask again
            self.release(host, consumer_uuid)
        where = f"host {host}, pool {pool_uuid}, consumer {consumer_uuid}, {claim.pool_mib} MiB not attached"
        return unavailable(error, where, self.waited(error, patient))

    def while_it_raises(self, kind: type[PondError], call: Callable[[], Answer]) -> Answer:
        """Return what a call answers, repeated for IN_USE_SECONDS while it raises this error: a guest just ends."""
        give_up_at = self._clock() + IN_USE_SECONDS
        retry = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(kind),
            stop=lambda _state: self._clock() >= give_up_at,
            wait=tenacity.wait_fixed(0.5),
            sleep=self._sleep,
            reraise=True,
        )
        return retry(call)

    def insist(self, host: str, call: Callable[[AgentAPI], Answer], patient: bool) -> Answer:
        """Return what an agent answers, asked again as this module says; raises PondError, MessagingException."""
        budget = RetryBudget(self._clock, self._patient_until if patient else 0.0)
        retry = tenacity.Retrying(
            retry=tenacity.retry_if_exception(worth_another_try),
            stop=budget.over,
            wait=budget.pause,
            sleep=self._sleep,
            before_sleep=self._teller(host) if patient else None,
            reraise=True,
        )
        answer = retry(lambda: call(self.client()))
        self.breaker(host).succeeded()
        return answer

    def _teller(self, host: str) -> Callable[[tenacity.RetryCallState], None]:
        """Return what logs now and then, while a guest of a host that boots waits, for what and how long yet."""
        tell_at = self._clock()

        def tell(state: tenacity.RetryCallState) -> None:
            nonlocal tell_at
            now, error = self._clock(), _error_of(state)
            if error is None or not tell_at <= now < self._patient_until:
                return
            tell_at = now + TELL_SECONDS
            left = self._patient_until - now
            LOG.warning("Guests with pool memory wait on %s, up to %.0f s more: %s", host, left, explain(error))

        return tell

    def waited(self, error: Exception, patient: bool) -> str:
        """Return, for the text of a failure, that a guest waited in vain since nova-compute started."""
        seconds = CONF.pondstack.agent_start_timeout_seconds
        if not patient or not seconds or not worth_another_try(error) or self._clock() < self._patient_until:
            return ""
        return f"; given up {seconds} s after the start of nova-compute: hard reboot the server once that works"

    def breaker(self, host: str) -> Breaker:
        """Return what knows whether an agent was silent again and again."""
        with self._lock:
            return self._breakers.setdefault(host, Breaker(self._clock, lambda: SILENT_SECONDS))

    def client(self) -> AgentAPI:
        """Return the client of the agents."""
        with self._lock:
            if self._api is None:
                self._api = self._make_api()
            return self._api


def _error_of(state: tenacity.RetryCallState) -> Exception | None:
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, Exception) else None


def pause(seconds: float) -> None:
    """Wait, as this thread may."""
    threading.Event().wait(seconds)
