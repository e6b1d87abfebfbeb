"""What Nova's versioned notifications say of an instance. Pure; None for a payload that does not say enough."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pondstack.domain.history import InstanceFacts

DATA = "nova_object.data"


def facts_of(payload: Any, sent_at: str) -> InstanceFacts | None:
    """Return the facts of an InstanceActionPayload; `sent_at` is the notification's time."""
    data = _data(payload)
    flavor = _data(data.get("flavor"))
    try:
        created_at, changed_at = _time(data.get("created_at")), _time(sent_at)
        if created_at is None or changed_at is None:
            return None
        image = _text(data.get("image_uuid"))
        return InstanceFacts(
            instance_uuid=str(UUID(data["uuid"])),
            project_id=_text(data["tenant_id"]),
            flavor_name=_text(flavor["name"]),
            memory_mib=int(flavor["memory_mb"]),
            vcpus=int(flavor["vcpus"]),
            image_uuid=image,
            # Of an image Glance knows better (os_distro); an instance from a volume has this only.
            image_os="" if image else _text(data.get("os_type")).lower(),
            zone=_text(data.get("availability_zone")),
            name=_text(data.get("display_name")),
            created_at=created_at,
            changed_at=changed_at,
            deleted_at=_time(data.get("deleted_at")) or _time(data.get("terminated_at")),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _data(item: Any) -> Mapping[str, Any]:
    found = item.get(DATA) if isinstance(item, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(value: Any) -> datetime | None:
    """Return a time of Nova's, which is UTC where it does not say so."""
    if not isinstance(value, str) or not value:
        return None
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
