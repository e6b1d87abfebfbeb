"""Nova's and Glance's APIs, thin and typed: what instances there are and were, and of which operating system.

Raises Unavailable when they do not answer or answer what they never should. Retries of connections are keystoneauth's.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg
from oslo_log import log

from pondstack.clients.keystone import load_adapter
from pondstack.conf import nova as options
from pondstack.domain.errors import Unavailable
from pondstack.domain.history import InstanceFacts

LOG = log.getLogger(__name__)

MICROVERSION = "2.53"
"""From 2.47 on servers say what their flavor was; from 2.69 on a cell that is down leaves holes."""
PAGE = 500
DELETED = "DELETED"


class Nova:
    """Calls to Nova's API; thread-safe."""

    def __init__(self, http: adapter.Adapter, images: adapter.Adapter) -> None:
        """`http`: of the service compute; `images`: of the service image."""
        self._http = http
        self._images = images

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
        query: dict[str, Any] = {"all_tenants": "True", "limit": PAGE}
        if changed_since is not None:
            query["changes-since"] = changed_since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        while True:
            servers = self._get(self._http, "/servers/detail", query, "servers")
            found = [facts for facts in map(_facts, servers) if facts is not None]
            if len(found) < len(servers):
                LOG.debug("%d of %d servers say too little of themselves", len(servers) - len(found), len(servers))
            yield found
            # Nova may give fewer than asked for (max_limit): only an empty page is the last one.
            if not servers:
                return
            query["marker"] = servers[-1]["id"]

    def image_os(self, image_uuid: str) -> str:
        """Return an image's operating system, lower case: os_distro, else os_type; "" where there is none."""
        found = self._get(self._images, f"/v2/images/{image_uuid}", {}, None)
        for key in ("os_distro", "os_type"):
            if isinstance(found.get(key), str) and found[key]:
                return str(found[key]).lower()
        return ""

    def _get(self, http: adapter.Adapter, path: str, query: Mapping[str, Any], key: str | None) -> Any:
        """Return a JSON document, or what it has under `key`; {} of an image that is not there."""
        try:
            answer = http.request(path, "GET", params=dict(query), raise_exc=False)
        except ks_exc.ClientException as error:
            raise Unavailable(f"GET {path} gets no answer ({error}); look at [nova] and the service's log") from error
        if key is None and answer.status_code in (403, 404):
            return {}
        if answer.status_code >= 400:
            raise Unavailable(f"GET {path} is refused: {answer.status_code} {answer.text[:300]}")
        try:
            return answer.json() if key is None else answer.json()[key]
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"GET {path} is answered with {answer.text[:300]!r}: is the URL right?") from error


def _facts(server: Mapping[str, Any]) -> InstanceFacts | None:
    """Return what a server says; None for one that a cell which is down keeps to itself."""
    try:
        created_at, changed_at = _time(server["created"]), _time(server["updated"])
        flavor, image = server["flavor"], server.get("image") or {}
        ended = _time(server.get("OS-SRV-USG:terminated_at")) or changed_at
        if created_at is None or changed_at is None:
            return None
        return InstanceFacts(
            instance_uuid=server["id"],
            project_id=server["tenant_id"],
            flavor_name=flavor["original_name"],
            memory_mib=int(flavor["ram"]),
            vcpus=int(flavor["vcpus"]),
            image_uuid=image.get("id") or "",
            image_os="",
            zone=server.get("OS-EXT-AZ:availability_zone") or "",
            name=server.get("name") or "",
            created_at=created_at,
            changed_at=changed_at,
            deleted_at=ended if server.get("status") == DELETED else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _time(value: str | None) -> datetime | None:
    if not value:
        return None
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
