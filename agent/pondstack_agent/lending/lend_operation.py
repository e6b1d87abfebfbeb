"""The verb `lend`: memory is registered buffer by buffer while there is room, then the controller is told."""

import threading

from oslo_log import log

from pondstack.domain.errors import PondError, Unavailable
from pondstack.domain.lending import LenderKind
from pondstack_agent.lending.client import LenderClient
from pondstack_agent.lending.lending_report import LendingReport
from pondstack_agent.lending.model import Holding
from pondstack_agent.lending.records import Entries, Entry, State
from pondstack_agent.lending.room import HostRoom

LOG = log.getLogger(__name__)


class Lends:
    """Carries lends out; its caller runs one operation at a time."""

    def __init__(self, client: LenderClient, room: HostRoom, entries: Entries, telling: LendingReport) -> None:
        self._client, self._room, self._entries, self._telling = client, room, entries, telling
        self._stop = threading.Event()

    def stop(self) -> None:
        """Stop at the next buffer: the agent ends, and its next life goes on."""
        self._stop.set()

    def step(self, entry: Entry) -> None:
        """Bring a lend to its end, as far as memory and controller allow; raises Unavailable to be called again."""
        if entry.state == State.PENDING:
            reason = self._register(entry)
            if self._stop.is_set():
                return
            entry = self._entries.put(entry, state=State.TELLING, reason=reason)
        sequence = self._telling.next()
        holding = retire(self._client, self._telling)
        refused = self._telling.tell(sequence, holding)
        self._entries.put(entry, state=State.DONE, ended_mib=holding.mib, reason=refused or entry.reason)
        LOG.info(
            "This host lends %d MiB as incarnation %s: %s", holding.mib, holding.incarnation, entry.reason or "as asked"
        )

    def _register(self, entry: Entry) -> str:
        """Register what is missing; returns why it is less than asked, '' when it is not."""
        try:
            holding = self._started(entry)
            lent, size = holding.mib, holding.buffer_mib
            allowed = self._room.allowed_mib(entry.mib)
            while lent + size <= allowed and not self._stop.is_set():
                # Looked at before each buffer: guests and others take memory meanwhile.
                if self._room.lendable_mib(holding, size) < size:
                    return f"the host keeps the rest: {lent} of {entry.mib} MiB are lent; see [lending] reserve_mib"
                self._client.register(holding.incarnation)
                lent += size
            if lent + size <= entry.mib and not self._stop.is_set():
                return f"the host may not lend more: {lent} of {entry.mib} MiB are lent; see [lending] most_mib"
        except PondError as error:
            return error.message
        return ""

    def _started(self, entry: Entry) -> Holding:
        """Return what the lender's process has; it is started where none runs, and something can be lent."""
        holding = self._client.hold()
        if not holding.incarnation:
            size = self._client.buffer_mib
            if entry.mib < size or self._room.lendable_mib(holding, size) < size:
                raise Unavailable(f"the host keeps all for itself: no buffer of {size} MiB; see [lending] reserve_mib")
            self._client.start()
            holding = self._client.hold()
            self._telling.note(holding.incarnation)
        self._client.become(holding.incarnation, LenderKind(entry.kind))
        return holding


def retire(client: LenderClient, telling: LendingReport) -> Holding:
    """End a process that holds nothing, so that the next one is of the installed version; returns what is held."""
    holding = client.hold()
    if not holding.incarnation or holding.buffers:
        return holding
    client.end(holding.incarnation)
    telling.note("")
    return Holding()
