"""Batches of samples on their way to the controller. A batch that is lost is lost: the next one is not far."""

from oslo_log import log

from pondstack.domain.errors import PondError
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.telemetry.outbox import Outbox

LOG = log.getLogger(__name__)

BATCH_SAMPLES = 2000
"""The most in one call: some 400 KB on the bus."""


class TelemetrySender:
    """Sends what is in the outbox; what cannot be sent now is forgotten, and said once."""

    def __init__(self, host: str, controller: ControllerAPI, outbox: Outbox) -> None:
        self._host = host
        self._controller = controller
        self._outbox = outbox
        self._trouble = ""

    def run(self) -> None:
        """Send all."""
        samples = self._outbox.take()
        trouble, sent = "", 0
        try:
            for at in range(0, len(samples), BATCH_SAMPLES):
                self._controller.telemetry(host=self._host, samples=samples[at : at + BATCH_SAMPLES])
                sent = at + BATCH_SAMPLES
        except PondError as error:
            trouble = error.message
        if trouble and not self._trouble:
            LOG.warning("Telemetry of host %s: %d samples are lost: %s", self._host, len(samples) - sent, trouble)
        elif self._trouble and not trouble and samples:
            LOG.info("Telemetry of host %s is sent again", self._host)
        if samples:
            self._trouble = trouble
