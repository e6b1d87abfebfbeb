"""Nova's and Glance's APIs, thin and typed: what instances there are and were, live migration, compute services.

Raises Unavailable when they do not answer or answer what they never should. Retries of connections are keystoneauth's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg
from oslo_log import log

from pondstack.clients import flavors
from pondstack.clients.keystone import load_adapter
from pondstack.clients.servers import (
    DELETED,
    RUNNING,
    UNSETTLED,
    PlacedServer,
    UnplacedServer,
    instance_facts,
    moment,
    placed_server,
    unplaced_server,
)
from pondstack.conf import nova as options
from pondstack.domain.errors import Conflict, NotFound, Unavailable
from pondstack.domain.history import InstanceFacts

LOG = log.getLogger(__name__)

MIGRATING = "migrating"
"""Nova's own name of that task."""

MICROVERSION = "2.53"
"""From 2.47 on servers say what their flavor was; from 2.69 on a cell that is down leaves holes."""
LIVE_MIGRATION_SECONDS = 300.0
"""A live migration of which Nova has written nothing for so long has ended, though Nova has it under way for ever."""

PAGE = 500
NOVA_ROLE = "give it the role of etc/deploy/nova-policy.yaml (Installation), or admin"


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a server is now. `host`: the hypervisor that it is on, whose agent has this name; "" for none.

    `busy`: what is being done with it, or why nothing is to be; "" for nothing. `running`: its process is there.
    `specs`: the extra specs of its flavor, as far as Nova shows them.
    """

    host: str
    busy: str
    running: bool
    specs: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ComputeService:
    """The compute service of one hypervisor. `servers`: the UUIDs of the servers that Nova has on it.

    `disabled_reason`: "" while it is enabled. `up`: whether nova-compute has reported lately. `name`: by which it is
    asked for as a destination. `hypervisor_type`: such as QEMU; Nova migrates between equal ones only.
    """

    uuid: str
    hypervisor: str
    enabled: bool
    disabled_reason: str
    up: bool
    servers: tuple[str, ...] = ()
    name: str = field(default="", compare=False)
    hypervisor_type: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """Servers that Nova's scheduler keeps together or apart; `policy`: affinity, anti-affinity, or soft-..."""

    uuid: str
    policy: str
    members: frozenset[str]


class Nova:
    """Calls to Nova's API; thread-safe."""

    def __init__(
        self,
        http: adapter.Adapter,
        images: adapter.Adapter,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`http`: of the service compute; `images`: of the service image."""
        self._http = http
        self._images = images
        self._now = now

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> "Nova":
        """Open the Nova of the [nova] section, and the Glance of the same catalogue."""
        http = load_adapter(conf, options.GROUP, MICROVERSION)
        images = adapter.Adapter(
            http.session, service_type="image", region_name=http.region_name, interface=http.interface, raise_exc=False
        )
        return cls(http, images)

    def instances(self, changed_since: datetime | None = None) -> Iterator[list[InstanceFacts]]:
        """Yield pages of all projects' instances, or of what changed since a time, deleted ones included."""
        for servers in self._servers(changed_since):
            found = [facts for facts in map(instance_facts, servers) if facts is not None]
            if len(found) < len(servers):
                LOG.debug("%d of %d servers say too little of themselves", len(servers) - len(found), len(servers))
            yield found

    def _servers(self, changed_since: datetime | None = None, **filters: str) -> Iterator[list[dict[str, Any]]]:
        """Yield pages of all projects' servers, or of what changed since a time, deleted ones included."""
        query: dict[str, Any] = {"all_tenants": "True", "limit": PAGE, **filters}
        if changed_since is not None:
            query["changes-since"] = changed_since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # Nova may give fewer than asked for (max_limit): only an empty page is the last one.
        while servers := self._get(self._http, "/servers/detail", query, "servers"):
            yield servers
            query["marker"] = servers[-1]["id"]

    def server(self, uuid: str) -> ServerState | None:
        """Return the state of a server, None when it does not exist any more; raises Unavailable."""
        path = f"/servers/{uuid}"
        answer = self._request(self._http, path, "GET")
        if answer.status_code == 404:
            self._check_sees_all()
            return None
        server = _read(answer, path, "server")
        try:
            status, task = server["status"], server["OS-EXT-STS:task_state"]
            host = server["OS-EXT-SRV-ATTR:hypervisor_hostname"] or ""
        except (KeyError, TypeError) as error:
            raise Unavailable(f"GET {path} hides {error}; the user of [nova] has to be an administrator") from error
        if status == DELETED:
            return None
        busy = task or (status if status in UNSETTLED else "")
        if not busy and status in RUNNING and self._migrates(uuid):
            busy = MIGRATING
        return ServerState(host, busy, status in RUNNING, flavors.specs(server.get("flavor") or {}))

    def _check_sees_all(self) -> None:
        """Raise Unavailable for a user from whom Nova hides servers: to him they do not exist."""
        answer = self._request(self._http, "/servers", "GET", params={"all_tenants": "True", "limit": 1})
        if answer.status_code == 403:
            raise Unavailable(f"Nova hides servers of other projects from the user of [nova]: {NOVA_ROLE}")
        _read(answer, "/servers", "servers")

    def _migrates(self, uuid: str) -> bool:
        """Whether a server without a task is being migrated live all the same.

        A nova-compute that starts takes the task off the servers whose migration it was about to begin or in the middle
        of, and begins it nevertheless when its request was still on its way.
        """
        path = f"/servers/{uuid}/migrations"
        answer = self._request(self._http, path, "GET")
        if answer.status_code == 404:
            return False
        oldest = self._now() - timedelta(seconds=LIVE_MIGRATION_SECONDS)
        moments = [
            moment(item.get("updated_at") or item.get("created_at")) for item in _read(answer, path, "migrations")
        ]
        return any(moment is not None and moment > oldest for moment in moments)

    def live_migrate(self, uuid: str, destination: str | None = None) -> None:
        """Ask for a server's live migration; raises Conflict, NotFound.

        `destination`: the name of a compute service, which the scheduler checks as any other; None: it finds one. It
        goes on in the background: the server has a task from the answer on, until the migration has ended.
        """
        path = f"/servers/{uuid}/action"
        answer = self._request(
            self._http, path, "POST", json={"os-migrateLive": {"host": destination, "block_migration": "auto"}}
        )
        if answer.status_code == 404:
            raise NotFound(f"Nova knows no server {uuid}")
        if answer.status_code in (400, 403, 409):
            raise Conflict(f"Nova refuses to migrate server {uuid}: {answer.status_code} {answer.text[:300]}")
        if answer.status_code >= 400:
            raise Unavailable(f"POST {path} is refused: {answer.status_code} {answer.text[:300]}")

    def compute_service(self, hypervisor: str) -> ComputeService | None:
        """Return the compute service of a hypervisor, with its servers; None: Nova knows none. Raises Unavailable."""
        path = "/os-hypervisors/detail"
        query = {"hypervisor_hostname_pattern": hypervisor, "with_servers": "True"}
        answer = self._request(self._http, path, "GET", params=query)
        if answer.status_code == 404:
            return None
        if answer.status_code == 403:
            raise Unavailable(f"the user of [nova] may not see compute services: {NOVA_ROLE}")
        found = _read(answer, path, "hypervisors")
        mine = [item for item in found if item.get("hypervisor_hostname") == hypervisor]
        return _compute_service(mine[0], path) if mine else None

    def compute_services(self) -> list[ComputeService]:
        """Return the compute services of all hypervisors, with their servers; raises Unavailable."""
        path, found = "/os-hypervisors/detail", []
        query: dict[str, Any] = {"with_servers": "True", "limit": PAGE}
        while True:
            answer = self._request(self._http, path, "GET", params=query)
            if answer.status_code == 403:
                raise Unavailable(f"the user of [nova] may not see compute services: {NOVA_ROLE}")
            items = _read(answer, path, "hypervisors")
            found += [_compute_service(item, path) for item in items]
            if not items:
                return found
            query["marker"] = items[-1]["id"]

    def placed(self) -> list[PlacedServer]:
        """Return all projects' servers that are on a hypervisor; raises Unavailable."""
        found = (placed_server(server) for page in self._servers() for server in page)
        return [server for server in found if server is not None]

    def unplaced(self, since: datetime) -> list[UnplacedServer]:
        """Return all projects' servers for which no host was found since then. Raises Unavailable."""
        found = (unplaced_server(server) for page in self._servers(since, status="ERROR") for server in page)
        return [server for server in found if server is not None and server.failed_at >= since]

    def server_groups(self) -> list[ServerGroup]:
        """Return all projects' server groups; raises Unavailable."""
        path, found, seen = "/os-server-groups", [], 0
        while True:
            query = {"all_projects": "True", "limit": PAGE, "offset": seen}
            groups = self._get(self._http, path, query, "server_groups")
            found += [
                ServerGroup(str(item["id"]), str((item.get("policies") or [""])[0]), frozenset(item["members"]))
                for item in groups
            ]
            if not groups:
                return found
            seen += len(groups)

    def disable(self, service: ComputeService, reason: str) -> None:
        """Have the scheduler place nothing on a compute service; what is there stays. Idempotent."""
        self._set_service(service, {"status": "disabled", "disabled_reason": reason})

    def enable(self, service: ComputeService) -> None:
        """Have the scheduler place servers on a compute service again. Idempotent."""
        self._set_service(service, {"status": "enabled"})

    def _set_service(self, service: ComputeService, body: Mapping[str, str]) -> None:
        path = f"/os-services/{service.uuid}"
        answer = self._request(self._http, path, "PUT", json=dict(body))
        if answer.status_code == 404:
            raise NotFound(f"Nova knows no compute service {service.uuid} of host {service.hypervisor} any more")
        if answer.status_code == 403:
            raise Unavailable(f"the user of [nova] may not change compute services: {NOVA_ROLE}")
        if answer.status_code >= 400:
            raise Unavailable(f"PUT {path} is refused: {answer.status_code} {answer.text[:300]}")

    def image_os(self, image_uuid: str) -> str:
        """Return an image's operating system, lower case: os_distro, else os_type; "" where there is none."""
        found = self._get(self._images, f"/v2/images/{image_uuid}", {}, None)
        for key in ("os_distro", "os_type"):
            if isinstance(found.get(key), str) and found[key]:
                return str(found[key]).lower()
        return ""

    def _get(self, http: adapter.Adapter, path: str, query: Mapping[str, Any], key: str | None) -> Any:
        """Return a JSON document, or what it has under `key`; {} of an image that is not there."""
        answer = self._request(http, path, "GET", params=dict(query))
        if key is None and answer.status_code in (403, 404):
            return {}
        return _read(answer, path, key)

    def _request(self, http: adapter.Adapter, path: str, method: str, **arguments: Any) -> Any:
        try:
            return http.request(path, method, raise_exc=False, **arguments)
        except ks_exc.ClientException as error:
            raise Unavailable(f"{method} {path} gets no answer ({error}); look at [nova] and the log") from error


def _read(answer: Any, path: str, key: str | None) -> Any:
    if answer.status_code >= 400:
        raise Unavailable(f"GET {path} is refused: {answer.status_code} {answer.text[:300]}")
    try:
        return answer.json() if key is None else answer.json()[key]
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"GET {path} is answered with {answer.text[:300]!r}: is the URL right?") from error


def _compute_service(item: Mapping[str, Any], path: str) -> ComputeService:
    try:
        service = item["service"]
        return ComputeService(
            uuid=str(service["id"]),
            hypervisor=item["hypervisor_hostname"],
            enabled=item["status"] == "enabled",
            disabled_reason=service.get("disabled_reason") or "",
            up=item["state"] == "up",
            servers=tuple(server["uuid"] for server in item.get("servers") or ()),
            name=service.get("host") or "",
            hypervisor_type=item.get("hypervisor_type") or "",
        )
    except (KeyError, TypeError) as error:
        raise Unavailable(f"GET {path} hides {error}; the user of [nova] has to be an administrator") from error
