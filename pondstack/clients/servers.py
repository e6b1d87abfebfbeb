"""Servers as Nova's API shows them in its lists: where they are, that they found no host, what they were."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pondstack.clients import flavors
from pondstack.domain.history import InstanceFacts

RUNNING = frozenset({"ACTIVE", "PAUSED", "REBOOT", "HARD_REBOOT", "PASSWORD", "MIGRATING"})
"""States of a server whose process is there. REBOOT to MIGRATING: Nova works on it."""
UNSETTLED = frozenset({"VERIFY_RESIZE", "RESCUE", "BUILD", "ERROR"})
"""States without a task in which a server is not to be worked on: half moved, of another image, or broken."""

DELETED = "DELETED"
NO_VALID_HOST = "No valid host was found"
"""How Nova's fault begins of a server for which the scheduler found none; nova-conductor writes it untranslated."""


@dataclass(frozen=True, slots=True)
class PlacedServer:
    """A server where it is; `host`, `busy`, `running` as ServerState has them.

    `traits`: what its flavor wants of a host's traits, "!NAME": that it lacks it; None: Nova does not show it, or the
    flavor asks for more than one group of resources. `specs`: as ServerState has them.
    """

    uuid: str
    host: str
    busy: str
    running: bool
    traits: tuple[str, ...] | None = ()
    specs: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class UnplacedServer:
    """A server that is on no host, because the scheduler found none when it was made; it stays in ERROR.

    `claim`: what it would claim in Placement; of a flavor with memory elsewhere, all of its memory. `traits`: as
    PlacedServer has them. `failed_at`: when that was.
    """

    uuid: str
    project_id: str
    flavor_name: str
    claim: Mapping[str, int]
    traits: tuple[str, ...] | None
    failed_at: datetime


def placed_server(server: Mapping[str, Any]) -> PlacedServer | None:
    """Return where a server is; None for one that is nowhere, or that a cell which is down keeps to itself."""
    host, status = server.get("OS-EXT-SRV-ATTR:hypervisor_hostname"), server.get("status")
    if not host:
        return None
    busy = server.get("OS-EXT-STS:task_state") or (status if status in UNSETTLED else "")
    flavor = server.get("flavor") or {}
    return PlacedServer(
        str(server["id"]), str(host), str(busy), status in RUNNING, flavors.traits(flavor), flavors.specs(flavor)
    )


def unplaced_server(server: Mapping[str, Any]) -> UnplacedServer | None:
    """Return a server that found no host; None: it failed otherwise, or says too little of itself."""
    fault, flavor = server.get("fault") or {}, server.get("flavor") or {}
    if server.get("OS-EXT-SRV-ATTR:hypervisor_hostname") or not str(fault.get("message")).startswith(NO_VALID_HOST):
        return None
    try:
        failed_at = moment(fault["created"])
        claim = flavors.claim(flavor, from_image=bool(server.get("image")))
        if failed_at is None:
            return None
        return UnplacedServer(
            str(server["id"]), server["tenant_id"], flavor["original_name"], claim, flavors.traits(flavor), failed_at
        )
    except (KeyError, TypeError, ValueError):
        return None


def instance_facts(server: Mapping[str, Any]) -> InstanceFacts | None:
    """Return what a server says; None for one that a cell which is down keeps to itself."""
    try:
        created_at, changed_at = moment(server["created"]), moment(server["updated"])
        flavor, image = server["flavor"], server.get("image") or {}
        ended = moment(server.get("OS-SRV-USG:terminated_at")) or changed_at
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


def moment(value: str | None) -> datetime | None:
    """Return a time of Nova's, None where there is none; raises ValueError."""
    if not value:
        return None
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
