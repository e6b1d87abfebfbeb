"""The highest epoch that this host has seen; an older controller is refused, after a restart too.

Whoever may send a command could lock this host out of its controller with one too high epoch, so a command is believed
only up to MAX_JUMP. Beyond it the agent refuses, and believes what the controller answers to its next heartbeat.
"""

import threading
from typing import Any

from oslo_log import log

from pondstack.domain.errors import BadRequest, DeviceFailed, StaleEpoch, Unavailable
from pondstack_agent.records import Records
from pondstack_agent.state_shapes import REMOVE_EPOCH

LOG = log.getLogger(__name__)

_KEY = "epoch"
MAX_JUMP = 1000
"""So many elections at most happen between two contacts with a host; a restore of the ledger raises its epoch by it."""
MAX_EPOCH = 2**63 - 1
"""The ledger's column has no greater one."""


class EpochGuard:
    """Persisted high-water mark of the controller's epoch."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._seen = _recorded(records)
        self._refused: int | None = None

    @property
    def seen(self) -> int:
        """The highest epoch so far."""
        return self._seen

    def check(self, epoch: Any) -> None:
        """Let the epoch of a command in and remember it.

        Raises StaleEpoch when a higher one was seen, Unavailable when it is implausibly high, BadRequest if it is none.
        """
        with self._lock:
            _require_epoch(epoch)
            if epoch - self._seen > MAX_JUMP:
                self._note(epoch)
                raise Unavailable(
                    f"this host has seen epoch {self._seen} and does not believe epoch {epoch} before the controller "
                    "confirms it in the answer to a heartbeat; try again after the next one"
                )
            self._advance(epoch)

    def confirm(self, epoch: Any) -> None:
        """Let in what the controller answered to a heartbeat, however high; raises StaleEpoch, BadRequest."""
        with self._lock:
            _require_epoch(epoch)
            self._advance(epoch)

    def _note(self, epoch: int) -> None:
        if epoch != self._refused:
            LOG.error(
                "Refused a command of epoch %d: this host has seen epoch %d. If the next heartbeat does not confirm "
                "it, somebody else than a controller sends commands: see who has the message bus's password",
                epoch,
                self._seen,
            )
            self._refused = epoch

    def _advance(self, epoch: int) -> None:
        if epoch < self._seen:
            raise StaleEpoch(
                f"this host has seen epoch {self._seen} and refuses epoch {epoch}; another controller leads now"
            )
        if epoch > self._seen:
            # On disk before anybody acts on it.
            self._records.put(_KEY, {"seen": epoch})
            LOG.info("Controller's epoch is %d", epoch)
            self._seen = epoch


def _recorded(records: Records) -> int:
    try:
        seen = (records.get(_KEY) or {}).get("seen", 0)
        _require_epoch(seen)
    except (BadRequest, DeviceFailed) as error:
        why = error.__cause__ or error.message
        raise DeviceFailed(f"the agent's state file {records.path(_KEY)} is damaged ({why}); {REMOVE_EPOCH}") from error
    return int(seen)


def _require_epoch(epoch: Any) -> None:
    if type(epoch) is not int or not 0 <= epoch <= MAX_EPOCH:
        raise BadRequest(f"{str(epoch)[:50]} is no epoch; an epoch is an integer from 0 to {MAX_EPOCH}")
