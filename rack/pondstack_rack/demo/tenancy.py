"""A project of the rack that goes at the end: its VMs on fake computes, what was decided for them, what they touch."""

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import NotFound

from pondstack_rack.cloud_client import Cloud
from pondstack_rack.layout import Layout, RackError
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until

FLAVOR, MEMORY_MIB = "pond.auto.medium", 8192
HOST_SINCE = "2.90"
MITIGATIONS_SINCE = "1.16"
SECONDS = 120.0
MITIGATED_SECONDS = 300.0
"""Time for a live migration that Nova gives up, or that gets pool memory again, and for one more."""
LOGS = "logs: nova-*.log, pondstack-*.log of the rack"
LABELLED = 0.5
"""Share of its life that must have been observed: as [prediction] min_coverage."""


class Tenancy:
    """One project; servers are known by their UUIDs."""

    def __init__(self, layout: Layout, name: str) -> None:
        self.name = name
        self._layout = layout
        self._cloud = cloud = Cloud.of_rack(layout.root)
        self._image, self._flavor = cloud.image(), cloud.flavors(FLAVOR)[FLAVOR]
        self._servers: set[str] = set()
        self.project_id = ""

    def __enter__(self) -> Self:
        self.project_id = keystone.make_project(self._layout, self.name)
        session = keystone.session(self._layout, project=self.name)
        self._nova = Adapter(session, "compute", region_name="RegionOne", default_microversion=HOST_SINCE)
        self._memory = Adapter(session, "memory", region_name="RegionOne", default_microversion="1.13")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.end(sorted(self._servers))
        keystone.delete_project(self._layout, self.project_id)

    def boot(self, count: int) -> list[str]:
        """Boot so many servers, each on a fake compute, and wait until they are active."""
        servers = []
        for number in range(count):
            body = {
                "name": f"{self.name}-{len(self._servers) + number}",
                "flavorRef": self._flavor,
                "imageRef": self._image,
                "networks": "none",
                "host": self._layout.fake_hosts[number % len(self._layout.fake_hosts)],
            }
            servers.append(str(self._nova.post("/servers", json={"server": body}).json()["server"]["id"]))
        self._servers.update(servers)
        for server in servers:
            self._until(partial(self._built, server), f"{server} is not built")
            if self._status(server) == "ERROR":
                fault = self._nova.get(f"/servers/{server}").json()["server"].get("fault", {})
                raise RackError(f"a server of project {self.name} is in ERROR: {fault.get('message')}")
        return servers

    def end(self, servers: Sequence[str]) -> None:
        """Delete servers, and wait until the history has heard of their end."""
        for server in servers:
            self._try(partial(self._nova.delete, f"/servers/{server}"))
        for server in servers:
            self._until(partial(self._gone, server), f"{server} is not deleted")
            self._until(partial(self._ended, server), f"the history knows no end of {server}")
        self._servers.difference_update(servers)

    def split(self, server: str) -> dict[str, Any]:
        """Return what was decided for a server and why, as the operator sees it by the API."""
        found: dict[str, Any] = {}

        def told() -> bool:
            found.update(self._try(lambda: self._memory.get(f"/splits/{server}").json()) or {})
            return bool(found)

        self._until(told, f"nobody has told of the split of {server}")
        return found

    def untouched_mib(self, server: str, expected_mib: int) -> int:
        """Return the label of a server, once it has come down to what is expected, and enough of its life was seen."""
        found: dict[str, Any] = {}

        def labelled() -> bool:
            found.update(self._try(lambda: self._memory.get(f"/history/{server}").json()) or {})
            label = found.get("untouched_mib")
            return label is not None and label <= expected_mib and found["coverage"] >= LABELLED

        self._until(labelled, f"{server} has no label of {expected_mib} MiB")
        return int(found["untouched_mib"])

    def mitigation(self, server: str) -> dict[str, Any]:
        """Return how a server was taken out of its pool memory, once that has ended."""
        found: dict[str, Any] = {}

        def ended() -> bool:
            told = self._memory.get(f"/mitigations?consumer_uuid={server}", microversion=MITIGATIONS_SINCE).json()
            found.update(next(iter(told["mitigations"]), {}))
            return bool(found.get("ended_at"))

        if not wait_until(ended, MITIGATED_SECONDS, 0.3):
            told = f"{found['state']} ({found['reason']})" if found else "not begun"
            raise RackError(f"after {MITIGATED_SECONDS:.0f} s the mitigation of {server} is {told}; {LOGS}")
        return found

    def claimed_mib(self, server: str, resource: str) -> int:
        """Return what a server claims in Placement."""
        return self._cloud.claimed_mib(server, resource)

    def _built(self, server: str) -> bool:
        return self._status(server) in ("ACTIVE", "ERROR")

    def _gone(self, server: str) -> bool:
        return self._status(server) == ""

    def _ended(self, server: str) -> bool:
        found = self._try(lambda: self._memory.get(f"/history/{server}").json())
        return bool(found and found["deleted_at"])

    def _status(self, server: str) -> str:
        """Return Nova's status, "" of one that is gone."""
        found = self._try(lambda: self._nova.get(f"/servers/{server}").json()["server"]["status"])
        return str(found or "")

    @staticmethod
    def _try(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except NotFound:
            return None

    @staticmethod
    def _until(condition: Callable[[], bool], otherwise: str) -> None:
        if not wait_until(condition, SECONDS, 0.3):
            raise RackError(f"after {SECONDS:.0f} s {otherwise}; {LOGS}")
