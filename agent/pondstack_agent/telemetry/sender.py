"""Batches of samples on their way to the controller. A batch that is lost is lost: the next one is not far."""

from oslo_log import log

from pondstack.domain.errors import PondError
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.telemetry.outbox import HostOutbox, Outbox

LOG = log.getLogger(__name__)

BATCH_SAMPLES = 2000
"""The most in one call: some 400 KB on the bus."""


class TelemetrySender:
    """Sends what is in the outbox; what cannot be sent now is forgotten, and said once."""

    def __init__(self, host: str, controller: ControllerAPI, outbox: Outbox, own: HostOutbox) -> None:
        """`own`: what the host measured of itself."""
        self._host = host
        self._controller = controller
        self._outbox, self._own = outbox, own
        self._trouble = ""

    def run(self) -> None:
        """Send all."""
        samples, readings = self._outbox.take(), self._own.take()
        trouble, sent = "", 0
        try:
            if readings:
                self._controller.host_telemetry(host=self._host, readings=readings)
            for at in range(0, len(samples), BATCH_SAMPLES):
                self._controller.telemetry(host=self._host, samples=samples[at : at + BATCH_SAMPLES])
                sent = at + BATCH_SAMPLES
        except PondError as error:
            trouble = error.message
        if trouble and not self._trouble:
            LOG.warning("Telemetry of host %s: %d samples are lost: %s", self._host, len(samples) - sent, trouble)
        elif self._trouble and not trouble and (samples or readings):
            LOG.info("Telemetry of host %s is sent again", self._host)
        if samples or readings:
            self._trouble = trouble
