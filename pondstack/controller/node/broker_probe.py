"""Whether this controller reaches the message broker, and what it does as the leader when it alone does not.

Probing and acting are apart: a call into a silent network may take minutes, and the hand-over must not wait for it.
"""

from collections.abc import Callable, Iterable

from oslo_log import log

from pondstack.ha.broker import BrokerTerms, Peer, successor

LOG = log.getLogger(__name__)


class BrokerProbe:
    """Calls this controller itself through the broker. probe() is for a thread of its own; all else returns at once.

    `ping(answer_seconds)` returns with the answer. `clock` counts seconds, goes on while the process is stopped, and is
    compared with itself only. `agent_down_seconds`: a silence after which agents are taken to be down.
    """

    def __init__(
        self,
        ping: Callable[[float], object],
        terms: BrokerTerms,
        clock: Callable[[], float],
        agent_down_seconds: float = 20.0,
    ) -> None:
        self._ping = ping
        self._terms = terms
        self._clock = clock
        self._agent_down = agent_down_seconds
        self._deaf_seconds = terms.deaf_seconds(agent_down_seconds)
        self._receiving_since: float | None = None
        self._began: float | None = None
        self._answered: float | None = None
        self.trouble = ""

    def probe(self) -> None:
        """Call this controller once through the broker, and note whether and when the answer came."""
        started = self._clock()
        if self._began is None:
            self._began = started
        try:
            self._ping(self._terms.answer_seconds)
        except Exception as error:  # noqa: BLE001 (whatever it was: there is no answer, and the next check asks again)
            self.trouble = f"{type(error).__name__}: {error}"
            LOG.debug("No answer from this controller itself: %s", self.trouble)
        else:
            if self.silent_seconds > self._deaf_seconds:
                self._receiving_since = self._clock()
            self._answered = started

    @property
    def seconds(self) -> float | None:
        """For how long nothing has come back, from the start of the last call that was answered; None: none was yet."""
        return None if self._answered is None else max(0.0, self._clock() - self._answered)

    @property
    def silent_seconds(self) -> float:
        """The same, from the start of the first call when none was answered yet."""
        since = self._began if self._answered is None else self._answered
        return 0.0 if since is None else max(0.0, self._clock() - since)

    @property
    def cut_off(self) -> bool:
        """Whether nothing has come back for too long."""
        return self._terms.cut_off(self.silent_seconds)

    @property
    def receiving(self) -> bool:
        """Whether messages reach this controller, so that an agent that is silent has itself to blame.

        It is False for `agent_down_seconds` after messages reach it again: agents have that long to report.
        """
        if self._answered is None or self.silent_seconds > self._deaf_seconds:
            return False
        return self._receiving_since is None or self._clock() - self._receiving_since >= self._agent_down


class StepAside:
    """Has a leader that is cut off hand over, once for each epoch. run() is for one thread.

    `peers()` reads who else there is; `hand_over(epoch, successor)` returns at once.
    """

    def __init__(
        self,
        probe: BrokerProbe,
        terms: BrokerTerms,
        *,
        peers: Callable[[], Iterable[Peer]],
        hand_over: Callable[[int, str], None],
    ) -> None:
        self._probe = probe
        self._terms = terms
        self._peers = peers
        self._hand_over = hand_over
        self._handed_over: int | None = None
        self._logged = ""

    def run(self, epoch: int | None) -> None:
        """Hand the lead of `epoch` over if that is due; None: this controller stands by. Raises Unavailable."""
        if not self._probe.cut_off:
            self._log("")
        elif epoch is None:
            self._log("another controller goes first at the next election")
        elif epoch != self._handed_over:
            self._hand_over_to_successor(epoch)

    def _hand_over_to_successor(self, epoch: int) -> None:
        name = successor(self._peers(), self._terms)
        if name is None:
            self._log("it keeps the lead, as no other controller is known to reach it")
            return
        self._log(f"it hands over to {name}, which reaches it")
        self._handed_over = epoch
        self._hand_over(epoch, name)

    def _log(self, what: str) -> None:
        """Log a change: once that the broker is silent and what comes of it, once that it is over."""
        if what and what != self._logged:
            seconds, trouble = self._probe.silent_seconds, self._probe.trouble or "it hangs"
            LOG.warning("This controller has not reached the broker for %.0f s; %s (%s)", seconds, what, trouble)
        elif self._logged and not what:
            LOG.info("This controller reaches the broker again")
        self._logged = what
