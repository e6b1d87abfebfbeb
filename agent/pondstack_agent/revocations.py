"""Whose credentials this host does not believe any more: what the controller says, kept over restarts."""

from collections.abc import Mapping
from typing import Any

import oslo_messaging

from pondstack.rpc.agent_api import REVOKED_VERSION
from pondstack.rpc.identity.revocations import Revocations
from pondstack_agent.records import Records
from pondstack_agent.rpc_errors import answered

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


class RevocationsEndpoint:
    """The method by which the host's nova-compute hears of it.

    Of its own version: oslo.messaging calls the first endpoint whose version covers a call's, and older verbs have
    endpoints of other versions beside them.
    """

    target = oslo_messaging.Target(version=REVOKED_VERSION)

    def __init__(self, revocations: Revocations) -> None:
        self._revocations = revocations

    @answered
    def get_revoked(self, _context: Any) -> dict[str, float]:
        """Return since when whose credentials are not believed, in seconds since 1970, by ROLE/NAME (since 1.7)."""
        return dict(self._revocations.moments)
