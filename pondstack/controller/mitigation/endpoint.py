"""RPC endpoint of the leading controller for mitigations (since 1.14); see ControllerAPI."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.mitigation.mitigator import Mitigator
from pondstack.db.read.reader import SqlReader
from pondstack.domain.errors import BadRequest
from pondstack.domain.mitigation import MitigationMethod, MitigationTrigger
from pondstack.rpc.controller_mitigation_api import MITIGATION_VERSION


class MitigationEndpoint:
    """What operators ask for. Errors are of pondstack.domain.errors. `mitigator()` may raise Conflict."""

    target = oslo_messaging.Target(version=MITIGATION_VERSION)

    def __init__(self, *, mitigator: Callable[[], Mitigator], reader: SqlReader, gate: Gate) -> None:
        self.gate = gate
        self._mitigator, self._reader = mitigator, reader

    @gated
    def mitigate(
        self, _context: Any, *, operation_id: str, consumer_uuid: str, forced: bool = False, by: str | None = None
    ) -> dict[str, Any]:
        """Begin a mitigation by this method; it goes on in the background."""
        if by is not None and by not in tuple(MitigationMethod):
            raise BadRequest(f"a mitigation is by {' or '.join(MitigationMethod)}, not {by!r}")
        begun = self._mitigator().begin(
            consumer_uuid,
            trigger=MitigationTrigger.OPERATOR,
            forced=forced,
            method=None if by is None else MitigationMethod(by),
            operation_id=operation_id,
        )
        return asdict(self._reader.mitigation(begun.uuid))

    @gated
    def abort_mitigation(self, _context: Any, *, operation_id: str, consumer_uuid: str) -> dict[str, Any]:
        """Have one undone."""
        return asdict(self._reader.mitigation(self._mitigator().abort(consumer_uuid, operation_id).uuid))
