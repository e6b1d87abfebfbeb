"""A rack whose controller mitigates in this Nova.

The hosts' pool memory is a file here, which is not copied: for the copy an agent's answers are played, and its slices
go back by the real agent.
"""

from typing import Any
from unittest import mock
from uuid import uuid4

from pondstack.ledger.records import MitigationRecord
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.wire import DomainRewrite, Mitigation
from tests.functional.clients import nova_of
from tests.functional.rack import NovaWithRack

POOL = "CUSTOM_POND_MEMORY_MB"
MEMORY_MIB = 4096
POOL_MIB = 2048
OPTIONS = """
[mitigation]
interval_seconds = 0.2
view_seconds = 3
retry_seconds = 2
"""


class PlayedCopies(AgentAPI):
    """Agents that copy at once, or not before they are told to stop. `seen`: what was claimed at each command."""

    test: "NovaWithMitigations"
    copies: dict[str, Mitigation]
    waits: bool
    seen: dict[str, Any]

    def mitigate(
        self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str, hold: bool = False
    ) -> Mitigation:
        """Copy."""
        del host, epoch
        assert hold
        self.note("mitigate", consumer_uuid)
        state = "moving" if type(self).waits else "mitigated"
        known = self.copies.get(consumer_uuid)
        if known is None or known.operation_id != operation_id:
            self.copies[consumer_uuid] = Mitigation(consumer_uuid, "allocation", operation_id, state, 1024, 512)
        return self.copies[consumer_uuid]

    def get_mitigation(self, host: str, *, consumer_uuid: str) -> Mitigation | None:
        """Tell."""
        del host
        return self.copies.get(consumer_uuid)

    def abort_mitigation(self, host: str, *, epoch: int, consumer_uuid: str, operation_id: str = "") -> Mitigation:
        """Stop."""
        del host, epoch
        self.copies[consumer_uuid] = Mitigation(consumer_uuid, "allocation", operation_id, "aborted")
        return self.copies[consumer_uuid]

    def rewrite_domain(self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str) -> DomainRewrite:
        """Rewrite nothing: there is no libvirt."""
        del host, epoch, operation_id
        self.note("rewrite_domain", consumer_uuid)
        return DomainRewrite("rewritten")

    def release_mitigated(self, host: str, *, epoch: int, operation_id: str, consumer_uuid: str) -> bool:
        """Release by the real agent."""
        del epoch, operation_id
        self.note("release_mitigated", consumer_uuid)
        self.detach(host, operation_id=str(uuid4()), consumer_uuid=consumer_uuid)
        return False

    def note(self, command: str, consumer: str) -> None:
        """Note what is claimed."""
        self.seen[command] = self.test.claim(consumer)


class NovaWithMitigations(NovaWithRack):
    """`mitigate` has a server mitigated; `is_local` is what holds of one that was."""

    def start_controller(self) -> None:
        """Have the controller reach this Nova, and agents that play copies."""
        PlayedCopies.test, PlayedCopies.copies, PlayedCopies.waits, PlayedCopies.seen = self, {}, False, {}
        url, project = self.admin_api.base_url, self.admin_api.project_id
        nova = nova_of(url, user="admin", project=project, roles="admin,member,reader")
        for target, value in (
            ("pondstack.controller.resources.Nova.from_conf", mock.Mock(return_value=nova)),
            ("pondstack.controller.leader.parts.AgentAPI", PlayedCopies),
        ):
            patcher = mock.patch(target, value)
            patcher.start()
            self.addCleanup(patcher.stop)
        super().start_controller()

    def _conf(self, name: str, text: str) -> Any:
        return super()._conf(name, text + OPTIONS if name == "controller" else text)

    def mitigate(self, server: dict[str, Any], **how: Any) -> None:
        """Have a server be mitigated."""
        self.api_of_controller.mitigate(consumer_uuid=server["id"], **how)

    def record(self, server: dict[str, Any]) -> MitigationRecord:
        """Return a server's newest mitigation."""
        found: MitigationRecord = self.real_controller.resources.reader.mitigations(consumer=server["id"])[0]
        return found

    def ended(self, server: dict[str, Any], state: str) -> MitigationRecord:
        """Wait for the end of a mitigation."""

        def look() -> MitigationRecord:
            found = self.record(server)
            assert found.ended_at is not None, found
            return found

        found: MitigationRecord = self.eventually(look)
        assert found.state == state, found
        return found

    def is_local(self, server: dict[str, Any], memory_mib: int = MEMORY_MIB) -> None:
        """The server claims all its memory of its host, and holds no slices; all agree."""

        def look() -> None:
            assert self.claim(server["id"]) == {self.host_of(server): {"MEMORY_MB": memory_mib}}
            assert self.slices_by_state() == {"free": self.slices}

        self.eventually(look)
        self.settled()

    def is_split(self, server: dict[str, Any]) -> None:
        """The server is as it was placed."""
        local = {self.host_of(server): {"MEMORY_MB": MEMORY_MIB - POOL_MIB}}
        assert self.claim(server["id"]) == local | self.pool_share()
        assert self.ledger_of(server) == {self.host_of(server): POOL_MIB}
        self.settled()

    def pool_share(self) -> dict[str, dict[str, int]]:
        """Return what a server claims of the pool."""
        return {str(self._get_resource_provider_by_uuid(self.pool)["name"]): {POOL: POOL_MIB}}

    def boot_split(self) -> dict[str, Any]:
        """Boot a server with pool memory, and wait until that is online."""
        server = self.boot_pond(POOL_MIB, MEMORY_MIB)
        self.eventually(lambda: self.is_split(server))
        return server

    def corrected(self, server: dict[str, Any]) -> bool:
        """Return whether a server's split is marked."""
        return self.real_controller.resources.reader.split(server["id"]).corrected_at is not None
