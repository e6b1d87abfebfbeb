"""Placement, thin and typed. One retry policy: connections by keystoneauth, generation conflicts by reading again.

Raises Unavailable when Placement does not answer or answers what it never should.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import tenacity
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg
from oslo_log import log

from pondstack.clients.keystone import load_adapter
from pondstack.conf import placement as options
from pondstack.domain.errors import Unavailable
from pondstack.domain.units import COMPUTE_TRAIT

LOG = log.getLogger(__name__)
MICROVERSION = "1.36"
OWNER = "pondstack"
"""Project and user of what the service itself claims; no quota counts it."""
T = TypeVar("T")


class _InUse(Exception):
    """Consumers hold something of a provider that was to be deleted."""


class _NoRoom(Exception):
    """What was to be claimed is not there."""


class _Conflict(Exception):
    """Somebody changed the provider since it was read."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """One inventory record, in the resource class's own unit."""

    total: int
    reserved: int
    step_size: int
    min_unit: int
    max_unit: int
    allocation_ratio: float = 1.0


class Placement:
    """Calls to Placement's API; thread-safe."""

    def __init__(self, http: adapter.Adapter, conflict_tries: int = 8) -> None:
        self._http = http
        self._tries = conflict_tries

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> "Placement":
        """Open the Placement of the [placement] section."""
        return cls(load_adapter(conf, options.GROUP, MICROVERSION), conf.placement.conflict_tries)

    # Providers

    def provider_by_name(self, name: str) -> str | None:
        """Return the UUID of the provider with this name."""
        return self._provider({"name": name})

    def host_provider(self, name: str) -> str | None:
        """Return the UUID of the provider of a host whose nova-compute has told Placement all of it.

        It writes the trait COMPUTE_NODE last; a change of ours before that costs it a conflict, and a minute.
        """
        return self._provider({"name": name, "required": COMPUTE_TRAIT})

    def _provider(self, params: Mapping[str, str]) -> str | None:
        found = self._get("/resource_providers", params=params)["resource_providers"]
        return str(found[0]["uuid"]) if found else None

    def ensure_provider(self, uuid: str, name: str) -> None:
        """Make the provider, or give it the name."""
        present = self._call("GET", f"/resource_providers/{uuid}", allowed=(404,))
        if present is None:
            self._call("POST", "/resource_providers", {"uuid": uuid, "name": name})
        elif present["name"] != name:
            self._call("PUT", f"/resource_providers/{uuid}", {"name": name})

    def ensure_resource_class(self, name: str) -> None:
        """Make a custom resource class; idempotent."""
        self._call("PUT", f"/resource_classes/{name}")

    def ensure_trait(self, uuid: str, trait: str) -> None:
        """Add a trait to a provider, which keeps its others."""

        def change() -> None:
            present = self._get(f"/resource_providers/{uuid}/traits")
            if trait not in present["traits"]:
                body = {
                    "traits": [*present["traits"], trait],
                    "resource_provider_generation": present["resource_provider_generation"],
                }
                self._put(f"/resource_providers/{uuid}/traits", body)

        self._again(change)

    def members(self, aggregate: str) -> dict[str, str]:
        """Return the names of the providers that are in an aggregate, by UUID."""
        return self._names({"member_of": aggregate})

    def usages(self, uuid: str) -> dict[str, int]:
        """Return what consumers hold of a provider, by resource class."""
        found = self._get(f"/resource_providers/{uuid}/usages")["usages"]
        return {str(name): int(amount) for name, amount in found.items()}

    def with_trait(self, trait: str) -> dict[str, str]:
        """Return the names of the providers that have a trait, by UUID."""
        return self._names({"required": trait})

    def candidates(self, amounts: Mapping[str, int], traits: Iterable[str]) -> set[str]:
        """Return the root providers of which these amounts can be claimed; `traits`: "!NAME" is one that they lack."""
        params = {"resources": ",".join(f"{name}:{amount}" for name, amount in sorted(amounts.items()))}
        wanted = ",".join(sorted(traits))
        if wanted:
            params["required"] = wanted
        found = self._get("/allocation_candidates", params=params)
        roots = {uuid: str(item["root_provider_uuid"]) for uuid, item in found["provider_summaries"].items()}
        return {roots[uuid] for request in found["allocation_requests"] for uuid in request["allocations"]}

    def _names(self, params: Mapping[str, str]) -> dict[str, str]:
        found = self._get("/resource_providers", params=params)["resource_providers"]
        return {str(item["uuid"]): str(item["name"]) for item in found}

    def remove_provider(self, uuid: str) -> bool:
        """Delete a provider with its inventories, traits and aggregates; False: consumers hold something of it.

        One that is not there is as good as deleted.
        """
        try:
            self._call("DELETE", f"/resource_providers/{uuid}", allowed=(404,))
        except _InUse:
            return False
        return True

    def change_aggregates(
        self,
        uuid: str,
        decide: Callable[[set[str]], set[str]],
        *,
        still: Callable[[], object] = lambda: None,
        force: bool = False,
    ) -> bool:
        """Set a provider's aggregates to what `decide` makes of the present ones; returns whether that was a change.

        `still` and `force`: as with set_inventory.
        """

        def change() -> bool:
            present = self._get(f"/resource_providers/{uuid}/aggregates")
            wanted = decide(set(present["aggregates"]))
            right = wanted == set(present["aggregates"])
            if right and not force:
                return False
            still()
            generation = present["resource_provider_generation"]
            body = {"aggregates": sorted(wanted), "resource_provider_generation": generation}
            self._put(f"/resource_providers/{uuid}/aggregates", body)
            return not right

        return self._again(change)

    # Inventory

    def inventory(self, uuid: str, resource_class: str) -> Inventory | None:
        """Return one inventory record; None when the provider or the record is missing."""
        present = self._call("GET", f"/resource_providers/{uuid}/inventories", allowed=(404,))
        return _inventory(present["inventories"].get(resource_class)) if present else None

    def inventories(self, uuid: str) -> dict[str, Inventory]:
        """Return all inventory records of a provider at one moment, by resource class; {} without the provider."""
        present = self._call("GET", f"/resource_providers/{uuid}/inventories", allowed=(404,))
        return {name: _made(record) for name, record in present["inventories"].items()} if present else {}

    def set_inventory(
        self,
        uuid: str,
        resource_class: str,
        wanted: Inventory,
        *,
        still: Callable[[], object] = lambda: None,
        force: bool = False,
    ) -> bool:
        """Write one inventory record; returns whether it was another before.

        `still` is called between the look at the provider's generation and the write on condition of it, and raises
        when the writer may write no more. With `force` it is written even if it is right: writes of others that looked
        before are refused from then on.
        """

        def change() -> bool:
            present = self._get(f"/resource_providers/{uuid}/inventories")
            right = _inventory(present["inventories"].get(resource_class)) == wanted
            if right and not force:
                return False
            still()
            body = {
                "resource_provider_generation": present["resource_provider_generation"],
                "inventories": {**present["inventories"], resource_class: _record(wanted)},
            }
            self._put(f"/resource_providers/{uuid}/inventories", body)
            return not right

        return self._again(change)

    # Allocations

    def allocations_of(self, uuid: str) -> dict[str, dict[str, int]] | None:
        """Return what each consumer holds of one provider ({consumer: {class: amount}}), None without the provider."""
        present = self._call("GET", f"/resource_providers/{uuid}/allocations", allowed=(404,))
        if present is None:
            return None
        return {consumer: dict(held["resources"]) for consumer, held in present["allocations"].items()}

    def held_by(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what one consumer holds, {provider: {class: amount}}; {} for one that Placement does not know."""
        present = self._get(f"/allocations/{consumer}")["allocations"]
        return {provider: dict(held["resources"]) for provider, held in present.items()}

    def claim(
        self,
        uuid: str,
        resource_class: str,
        amounts: Mapping[str, int],
        *,
        still: Callable[[], object] = lambda: None,
    ) -> bool:
        """Have consumers of ours hold these amounts of a provider, all or none, in place of what each held before.

        False: there is not so much. `still`: as with set_inventory. They are consumers that Nova does not know:
        `nova-manage placement audit --delete` may drop what they hold at any time.
        """

        def change() -> bool:
            body = {consumer: self._claimed(consumer, uuid, resource_class, mib) for consumer, mib in amounts.items()}
            still()
            try:
                self._call("POST", "/allocations", body)
            except _NoRoom as error:
                LOG.debug("Placement refuses a claim of %d of %s: %s", sum(amounts.values()), resource_class, error)
                return False
            return True

        return self._again(change)

    def _claimed(self, consumer_uuid: str, uuid: str, resource_class: str, amount: int) -> dict[str, Any]:
        present = self._get(f"/allocations/{consumer_uuid}")
        return {
            "allocations": {uuid: {"resources": {resource_class: amount}}},
            "project_id": OWNER,
            "user_id": OWNER,
            "consumer_generation": present.get("consumer_generation"),
        }

    def resize_claim(
        self,
        consumer_uuid: str,
        change: Callable[[Mapping[str, Mapping[str, int]]], Mapping[str, Mapping[str, int]]],
        *,
        still: Callable[[], object] = lambda: None,
        force: bool = False,
    ) -> bool:
        """Have a consumer of Nova's hold what `change` makes of {provider: {class: amount}}, by one request.

        It is on condition that nobody, Nova above all, has changed the claim meanwhile; then `change` is asked again,
        and may raise. False: there is not so much. `still`, `force`: as with set_inventory.
        """

        def replace() -> bool:
            present = self._get(f"/allocations/{consumer_uuid}")
            held = {uuid: dict(item["resources"]) for uuid, item in present["allocations"].items()}
            wanted = change(held)
            if wanted == held and not force:
                return True
            body = {
                "allocations": {uuid: {"resources": dict(amounts)} for uuid, amounts in wanted.items()},
                **{name: present[name] for name in ("project_id", "user_id", "consumer_generation")},
            }
            still()
            try:
                self._put(f"/allocations/{consumer_uuid}", body)
            except _NoRoom as error:
                LOG.debug("Placement refuses to change the claim of %s: %s", consumer_uuid, error)
                return False
            return True

        return self._again(replace)

    def drop_claim(self, consumer_uuid: str) -> None:
        """Have a consumer of ours hold nothing; idempotent."""
        self._call("DELETE", f"/allocations/{consumer_uuid}", allowed=(404,))

    def _again(self, change: Callable[[], T]) -> T:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Conflict),
            stop=tenacity.stop_after_attempt(self._tries),
            wait=tenacity.wait_random(0.0, 0.2),
            reraise=True,
        )
        try:
            return retrying(change)
        except _Conflict as error:
            raise Unavailable(f"Placement: {error}; somebody else keeps changing it, try again later") from error

    def _get(self, path: str, **arguments: Any) -> dict[str, Any]:
        answer = self._call("GET", path, **arguments)
        assert answer is not None
        return answer

    def _put(self, path: str, body: Mapping[str, Any]) -> None:
        self._call("PUT", path, body)

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str] | None = None,
        allowed: tuple[int, ...] = (),
    ) -> dict[str, Any] | None:
        """Return the JSON answer, None for an empty one or one of the `allowed` error states."""
        arguments: dict[str, Any] = {
            "raise_exc": False,
            "headers": {"OpenStack-API-Version": f"placement {MICROVERSION}"},
        }
        if body is not None:
            arguments["json"] = body
        if params is not None:
            arguments["params"] = params
        try:
            answer = self._http.request(path, method, **arguments)
        except ks_exc.ClientException as error:
            raise Unavailable(f"Placement does not answer ({error}); look at its log") from error
        if answer.status_code in allowed:
            return None
        if answer.status_code == 409 and "placement.concurrent_update" in answer.text:
            raise _Conflict(f"{method} {path} met a newer generation")
        if answer.status_code == 409 and path.startswith("/allocations") and method != "DELETE":
            raise _NoRoom(answer.text[:300])
        if answer.status_code == 409 and method == "DELETE":
            raise _InUse(answer.text[:300])
        if answer.status_code >= 400:
            raise Unavailable(f"Placement refused {method} {path}: {answer.status_code} {answer.text[:300]}")
        return dict(answer.json()) if answer.content else None


def _inventory(record: Mapping[str, Any] | None) -> Inventory | None:
    return None if record is None else _made(record)


def _made(record: Mapping[str, Any]) -> Inventory:
    return Inventory(
        record["total"],
        record["reserved"],
        record["step_size"],
        record["min_unit"],
        record["max_unit"],
        record["allocation_ratio"],
    )


def _record(wanted: Inventory) -> dict[str, Any]:
    return {
        "total": wanted.total,
        "reserved": wanted.reserved,
        "step_size": wanted.step_size,
        "min_unit": wanted.min_unit,
        "max_unit": wanted.max_unit,
        "allocation_ratio": wanted.allocation_ratio,
    }
