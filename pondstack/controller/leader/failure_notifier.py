"""Tells of guests whose memory failed, what the ledger says is untold: each once, whoever leads.

A leader that ends between the sending and its note of it leaves the event to the next one, which sends it again with
the same event UUID. Nothing is lost.
"""

from collections.abc import Callable

from oslo_log import log

from pondstack.ledger.failures import MemoryFailed
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)


class FailureNotifier:
    """`send` returns when the message is safe. run() is for one thread; expect() may come from any."""

    def __init__(self, ledger: Ledger, send: Callable[[MemoryFailed], None]) -> None:
        self._ledger = ledger
        self._send = send
        # A new leader does not know what its predecessor has left untold.
        self._expected = True

    def expect(self) -> None:
        """Something is there to be told."""
        self._expected = True

    def run(self) -> None:
        """Tell all there is; what fails stays for the next run. Raises NotLeader, Unavailable."""
        if not self._expected:
            return
        self._expected = False
        try:
            for event in self._ledger.untold():
                LOG.error(
                    "Instance %s on host %s has lost %d MiB: %s",
                    event.instance_uuid,
                    event.host,
                    event.pool_mib,
                    event.reason,
                )
                self._send(event)
                self._ledger.told(event)
        except BaseException:
            self._expected = True
            raise
