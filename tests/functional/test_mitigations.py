"""Mitigations with real Nova, Placement, controller and ledger: what is claimed at each step, and in the end.

The hosts' pool memory is a file here, which is not copied: for the copy an agent's answers are played, and its slices
go back by the real agent.
"""

from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from keystoneauth1 import adapter, session, token_endpoint

from pondstack.clients.nova import MICROVERSION, Nova
from pondstack.domain import errors
from pondstack.ledger.records import MitigationRecord
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.wire import DomainRewrite, Mitigation
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

    test: "TestMitigations"
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


class TestMitigations(NovaWithRack):
    """By copy and by live migration."""

    def start_controller(self) -> None:
        """Have the controller reach this Nova, and agents that play copies."""
        PlayedCopies.test, PlayedCopies.copies, PlayedCopies.waits, PlayedCopies.seen = self, {}, False, {}
        who = {
            "X-Auth-User": "admin",
            "X-User-Id": "admin",
            "X-Auth-Project-Id": self.admin_api.project_id,
            "X-Roles": "admin,member,reader",
        }
        http = adapter.Adapter(
            session.Session(auth=token_endpoint.Token(self.admin_api.base_url, "t")),
            endpoint_override=self.admin_api.base_url,
            default_microversion=MICROVERSION,
            service_type="compute",
            additional_headers=who,
        )
        for target, value in (
            ("pondstack.controller.resources.Nova.from_conf", mock.Mock(return_value=Nova(http, http))),
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

    def is_local(self, server: dict[str, Any]) -> None:
        """The server claims all its memory of its host, and holds no slices; all agree."""

        def look() -> None:
            assert self.claim(server["id"]) == {self.host_of(server): {"MEMORY_MB": MEMORY_MIB}}
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

    def is_asked(self) -> None:
        """The host was told to copy."""
        assert "mitigate" in PlayedCopies.seen

    def boot_split(self) -> dict[str, Any]:
        """Boot a server with pool memory, and wait until that is online."""
        server = self.boot_pond(POOL_MIB, MEMORY_MIB)
        self.eventually(lambda: self.is_split(server))
        return server

    def fill(self, host: str) -> str:
        """Claim what leaves a host a MiB less than a mitigation needs; returns the consumer."""
        provider, consumer = self._get_provider_uuid_by_name(host), str(uuid4())
        memory = self._get_provider_inventory(provider)["MEMORY_MB"]
        capacity = int((memory["total"] - memory["reserved"]) * memory["allocation_ratio"])
        free = capacity - self._get_provider_usages(provider)["MEMORY_MB"]
        body = {
            "allocations": {provider: {"resources": {"MEMORY_MB": free - POOL_MIB + 1}}},
            "project_id": "others",
            "user_id": "others",
            "consumer_generation": None,
        }
        self._call("put", f"/allocations/{consumer}", body, "1.36")
        return consumer

    def corrected(self, server: dict[str, Any]) -> bool:
        """Return whether a server's split is marked."""
        return self.real_controller.resources.reader.split(server["id"]).corrected_at is not None

    def test_by_copy(self) -> None:
        """Claim, copy, domain, slices, claim; then Nova's moves keep it local, and nothing does it twice."""
        server = self.boot_split()
        host = self.host_of(server)
        self.mitigate(server, method="copy")
        assert self.ended(server, "done").left_mib == 0
        self.is_local(server)
        assert self.corrected(server)
        both = {host: {"MEMORY_MB": MEMORY_MIB}} | self.pool_share()
        assert PlayedCopies.seen == dict.fromkeys(("mitigate", "rewrite_domain", "release_mitigated"), both)
        with pytest.raises(errors.PondError):
            self.mitigate(server)
        self._reboot_server(server, hard=True)
        self.is_local(server)
        server = self._live_migrate(server)
        self.is_local(server)
        server = self._migrate_server(server)
        self._confirm_resize(server)
        self.is_local(server)

    def test_no_room_and_an_abort(self) -> None:
        """The host is full: nothing has changed. With room again it begins, and is aborted: all is as before."""
        server = self.boot_split()
        filler = self.fill(self.host_of(server))
        self.mitigate(server, method="copy")
        assert "no local memory" in self.ended(server, "failed").reason
        self.is_split(server)
        self.placement.delete(f"/allocations/{filler}", version="1.36")
        PlayedCopies.waits = True
        self.mitigate(server, method="copy")
        self.eventually(self.is_asked)
        assert self.record(server).state == "moving"
        self.settled()
        self.api_of_controller.abort_mitigation(consumer_uuid=server["id"])
        self.ended(server, "aborted")
        self.is_split(server)
        assert not self.corrected(server)

    def test_by_migration(self) -> None:
        """Nova moves it to a host where all of it is local; cold moves and a resize keep it so."""
        server = self.boot_split()
        source = self.host_of(server)
        self.mitigate(server, method="migrate")
        self.ended(server, "done")
        assert self.host_of(server) != source
        self.is_local(server)
        assert self.corrected(server)
        assert PlayedCopies.seen == {}
        server = self._resize_server(server, self.flavor(MEMORY_MIB, policy="fixed", pool_mb="1024"))
        self._confirm_resize(server)
        self.is_local(server)
