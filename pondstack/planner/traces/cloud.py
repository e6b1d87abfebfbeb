"""A running cloud, by its APIs: Nova's instances, deleted ones included, and Placement's hosts.

Where pondstack runs there, its history gives what each instance left untouched, which nothing else in a cloud knows.
The user has to be an administrator of Nova, or have the role that the installation of pondstack gives its own user.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import openstack
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc

from pondstack.clients.compute_room import ComputeRoom
from pondstack.clients.nova import MICROVERSION, Nova
from pondstack.clients.placement import Placement
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.history import InstanceFacts
from pondstack.planner.traces import instances
from pondstack.planner.traces.imported import Hosts, Imported, Options
from pondstack.planner.traces.instances import Instance, Window

NOVA, PONDSTACK = "nova", "pondstack"
NOTE = "Nova tells of deleted instances until they are archived or purged"
HISTORY_MICROVERSION = "1.12"
"""From here on the API shows an instance's history."""


class Cloud:
    """What an import asks of a cloud."""

    def __init__(self, compute: adapter.Adapter, placement: adapter.Adapter, memory: adapter.Adapter | None) -> None:
        """`memory`: pondstack's API, None: not asked."""
        self._nova = Nova(compute, compute)
        self._placement = Placement(placement)
        self._memory = memory

    @classmethod
    def connected(cls, name: str | None, *, history: bool) -> "Cloud":
        """Open a cloud of clouds.yaml, or that of the OS_ variables. Raises BadRequest for one that is not known."""
        try:
            region = openstack.connect(cloud=name or None).config
            session = region.get_session()
        except (sdk_exc.SDKException, ks_exc.ClientException) as error:
            raise BadRequest(f"cloud {name or 'of the OS_ variables'}: {error}; see --os-cloud") from error

        def service(kind: str, microversion: str | None = None) -> adapter.Adapter:
            return adapter.Adapter(
                session,
                service_type=kind,
                region_name=region.get_region_name(kind),
                interface=region.get_interface(kind),
                default_microversion=microversion,
                raise_exc=False,
            )

        memory = service("memory", HISTORY_MICROVERSION) if history else None
        return cls(service("compute", MICROVERSION), service("placement"), memory)

    def trace(self, window: Window, options: Options) -> Imported:
        """Return the trace of a window. Raises Unavailable, or BadRequest where it has no instance."""
        facts = self._facts(window.since)
        found = [self._instance(item) for item in facts.values()]
        notes = [NOTE]
        if self._memory is not None:
            known = sum(item.untouched_percent is not None for item in found)
            notes.append(f"untouched memory is known of {known} instances, by pondstack's history")
        origin = NOVA if self._memory is None else PONDSTACK
        hosts, usage = self.hosts()
        return instances.imported(origin, found, window, options, origin, [*notes, usage], hosts)

    def hosts(self) -> tuple[Hosts, str]:
        """Return the hosts, and a note on what is claimed of them; raises Unavailable.

        Of what Placement may give out: ratios and reservations are counted.
        """
        room = ComputeRoom.of(self._placement)
        note = (
            f"Placement has {room.claimed_vcpus:,} of {room.vcpus:,} vCPUs and "
            f"{room.claimed_mib:,} of {room.memory_mib:,} MiB of {room.number} hosts claimed now"
        )
        return Hosts(room.number, room.vcpus, room.memory_mib), note

    def _facts(self, since: datetime) -> dict[str, InstanceFacts]:
        """Return what Nova knows by UUID; what it says later, of ends, counts."""
        return {item.instance_uuid: item for pages in self._pages(since) for item in pages}

    def _pages(self, since: datetime) -> Iterator[list[InstanceFacts]]:
        yield from self._nova.instances()
        yield from self._nova.instances(since)

    def _instance(self, item: InstanceFacts) -> Instance:
        return Instance(
            uuid=item.instance_uuid,
            project_id=item.project_id,
            vcpus=item.vcpus,
            memory_mib=item.memory_mib,
            started=item.created_at,
            ended=item.deleted_at,
            untouched_percent=None if self._memory is None else _untouched(self._memory, item),
        )


def _untouched(memory: adapter.Adapter, item: InstanceFacts) -> float | None:
    """Return what is known of an instance, as far as it would train a model. Raises Unavailable."""
    path = f"/history/{item.instance_uuid}"
    try:
        answer = memory.get(path)
        if answer.status_code == 404:
            return None
        if answer.status_code >= 400:
            raise Unavailable(f"GET {path} of pondstack is refused: {answer.status_code} {answer.text[:300]}")
        found: dict[str, Any] = answer.json()
        if not found["trains"] or found["untouched_mib"] is None:
            return None
        return 100.0 * float(found["untouched_mib"]) / item.memory_mib
    except (ks_exc.ClientException, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise Unavailable(f"GET {path} of pondstack gets no history ({error}); is its API in the catalogue?") from error
