"""Whose credentials this host does not believe any more: what the controller says, kept over restarts."""

from collections.abc import Mapping
from typing import Any

from pondstack.rpc.identity.revocations import Revocations
from pondstack_agent.records import Records

KEY = "revoked"


class KeptRevocations:
    """Keeps what heartbeats are answered with. Raises DeviceFailed where the file is damaged."""

    def __init__(self, records: Records, revocations: Revocations) -> None:
        self._records = records
        self._revocations = revocations
        revocations.note(records.get(KEY) or {})

    def note(self, moments: Mapping[str, Any]) -> None:
        """Take over the answer to a heartbeat."""
        if self._revocations.note(moments):
            self._records.put(KEY, dict(self._revocations.moments))
