"""Client of the agents for mitigations; part of pondstack.rpc.agent_api.AgentAPI."""

from abc import ABC, abstractmethod
from typing import Any

from pondstack.rpc.wire import DomainRewrite, Mitigation

HELD_MITIGATION_VERSION = "1.6"
"""The version that came with `hold`, rewrite_domain(), release_mitigated(); older ones raise UnsupportedVersion."""


class AgentMitigationAPI(ABC):
    """The part of AgentAPI for mitigations. With `hold` a mitigation has three steps, each by a command of its own:

    mitigate (the copy), rewrite_domain, release_mitigated; without, the agent gives the slices back once all has moved.
    """

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def mitigate(
        self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str, hold: bool = False
    ) -> Mitigation:
        """Controller's command: begin to move all pool pages of a guest to local memory; returns at once.

        Idempotent by operation id. With `hold` the guest keeps its slices once all has moved ("mitigated"), until
        release_mitigated(); one that does not run has no pages to move, and is mitigated at once. Raises StaleEpoch,
        NotFound, BadRequest (slices on a file: live-migrate the guest), HostUnusable, NoLocalRoom, Conflict.
        """
        held: dict[str, Any] = {"version": HELD_MITIGATION_VERSION, "hold": True} if hold else {}
        answer = self._call(
            host, "mitigate", epoch=epoch, operation_id=operation_id, consumer_uuid=consumer_uuid, **held
        )
        return Mitigation.from_wire(answer)

    def get_mitigation(self, host: str, *, consumer_uuid: str) -> Mitigation | None:
        """Return how far a guest's newest mitigation is, None when there was none."""
        answer = self._call(host, "get_mitigation", consumer_uuid=consumer_uuid)
        return Mitigation.from_wire(answer) if answer else None

    def abort_mitigation(self, host: str, *, epoch: int, consumer_uuid: str, operation_id: str = "") -> Mitigation:
        """Controller's command: stop a mitigation at its next chunk; raises StaleEpoch, NotFound.

        With `operation_id` (since 1.6) one that has not begun here never will: a mitigate of that id that is still on
        its way answers "aborted". Raises Conflict for a held one whose pages have all moved: it is too late.
        """
        named: dict[str, Any] = (
            {"version": HELD_MITIGATION_VERSION, "operation_id": operation_id} if operation_id else {}
        )
        answer = self._call(host, "abort_mitigation", epoch=epoch, consumer_uuid=consumer_uuid, **named)
        return Mitigation.from_wire(answer)

    def rewrite_domain(self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str) -> DomainRewrite:
        """Controller's command: bind what libvirt keeps of a guest, stored domain and managed save, to local memory.

        Idempotent. Raises StaleEpoch; Unavailable or HostUnusable when libvirt does not do it: try again.
        """
        asked = {"epoch": epoch, "operation_id": operation_id, "consumer_uuid": consumer_uuid}
        return DomainRewrite.from_wire(self._call(host, "rewrite_domain", version=HELD_MITIGATION_VERSION, **asked))

    def release_mitigated(self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str) -> bool:
        """Controller's command: release the slices of a held guest that is mitigated; True when nothing is held.

        False: they go offline in the background. Idempotent. Raises StaleEpoch, InUse when the guest uses them again
        (it was started meanwhile: mitigate again, by a new operation id), Conflict when it is not mitigated.
        """
        asked = {"epoch": epoch, "operation_id": operation_id, "consumer_uuid": consumer_uuid}
        return bool(self._call(host, "release_mitigated", version=HELD_MITIGATION_VERSION, **asked))
