"""Sends a message for each guest whose memory failed: all that the ledger has not marked as sent, whoever leads.

A leader that ends between sending a message and marking it leaves it to the next one, which sends it again with the
same event UUID. Nothing is lost.
"""

from collections.abc import Callable

from oslo_log import log

from pondstack.ledger.failures import MemoryFailed
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)


class FailureNotifier:
    """`send` returns when the message is safe. run() is for one thread, wake() for any."""

    def __init__(self, ledger: Ledger, send: Callable[[MemoryFailed], None]) -> None:
        self._ledger = ledger
        self._send = send
        # A new leader does not know what its predecessor has not sent.
        self._woken = True

    def wake(self) -> None:
        """Have the next run look for messages to send."""
        self._woken = True

    def run(self) -> None:
        """Send all there is; what fails stays for the next run. Raises NotLeader, Unavailable."""
        if not self._woken:
            return
        self._woken = False
        try:
            for event in self._ledger.failures.pending():
                LOG.error(
                    "Instance %s on host %s has lost %d MiB: %s",
                    event.instance_uuid,
                    event.host,
                    event.pool_mib,
                    event.reason,
                )
                self._send(event)
                self._ledger.failures.mark_sent(event)
        except BaseException:
            self._woken = True
            raise
