"""The running rack as its administrator sees it: thin calls to Nova, Placement and pondstack over keystoneauth."""

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from keystoneauth1 import adapter, session
from keystoneauth1.exceptions import HttpError, NotFound
from keystoneauth1.identity import v3

NOVA_MICROVERSION = "2.90"
PLACEMENT_MICROVERSION = "1.38"
MEMORY_MICROVERSION = "1.1"
SPLITS_MICROVERSION = "1.9"
BUFFERS_MICROVERSION = "1.8"
DELETION_SECONDS = 30.0
ATTEMPTS = 3
"""Reads and idempotent writes are repeated when a connection breaks or a service says 503."""


class NoRack(RuntimeError):
    """There is no usable rack; the text says what to do."""


def read_openrc(path: Path) -> dict[str, str]:
    """Return the variables that a shell file of `export NAME=value` lines sets. Raises NoRack."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        raise NoRack(f"{path} is missing: run `make rack` first, or set RACK_DIR") from None
    variables = {}
    for line in lines:
        for word in shlex.split(line, comments=True):
            name, equals, value = word.partition("=")
            if equals and name.isidentifier():
                variables[name] = value
    return variables


class Cloud:
    """Administrator's view of one cloud."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        auth = v3.Password(
            auth_url=variables["OS_AUTH_URL"],
            username=variables["OS_USERNAME"],
            password=variables["OS_PASSWORD"],
            project_name=variables.get("OS_PROJECT_NAME", "admin"),
            user_domain_id=variables.get("OS_USER_DOMAIN_ID", "default"),
            project_domain_id=variables.get("OS_PROJECT_DOMAIN_ID", "default"),
        )
        keystone = session.Session(auth=auth, timeout=120, verify=variables.get("OS_CACERT", True))

        def service(kind: str, microversion: str | None = None) -> adapter.Adapter:
            return adapter.Adapter(
                keystone,
                service_type=kind,
                region_name=variables.get("OS_REGION_NAME"),
                default_microversion=microversion,
                connect_retries=ATTEMPTS,
                status_code_retries=ATTEMPTS,
                retriable_status_codes=[503],
            )

        self.nova = service("compute", NOVA_MICROVERSION)
        self.placement = service("placement", PLACEMENT_MICROVERSION)
        self.memory = service("memory", MEMORY_MICROVERSION)
        self.images = service("image")

    @classmethod
    def of_rack(cls, folder: Path) -> "Cloud":
        """Return the cloud of the rack in a folder, as its openrc says."""
        variables = read_openrc(folder / "openrc")
        try:
            return cls(variables)
        except KeyError as error:
            raise NoRack(f"{folder / 'openrc'} sets no {error.args[0]}") from None

    # Nova -----------------------------------------------------------------------------------------------------------

    def fake_hosts(self) -> dict[str, str]:
        """Return the fake computes that are up and enabled: name to provider UUID."""
        found = self.nova.get("/os-hypervisors/detail").json()["hypervisors"]
        return {
            item["hypervisor_hostname"]: item["id"]
            for item in found
            if item["hypervisor_type"] == "fake" and item["state"] == "up" and item["status"] == "enabled"
        }

    def image(self) -> str:
        """Return an image that any compute boots; raises NoRack when Glance has none."""
        images = self.images.get("/v2/images").json()["images"]
        usable = [
            item
            for item in images
            if item["status"] == "active" and item["disk_format"] not in {"aki", "ari"} and "img_hv_type" not in item
        ]
        if not usable:
            raise NoRack("Glance has no active image that fake computes boot: run `make rack` again")
        return str(usable[0]["id"])

    def flavors(self, prefix: str) -> dict[str, str]:
        """Return the flavors whose name begins with `prefix`: name to id."""
        found = self.nova.get("/flavors?is_public=none&limit=1000").json()["flavors"]
        return {item["name"]: item["id"] for item in found if item["name"].startswith(prefix)}

    def create_flavor(self, name: str, vcpus: int, memory_mib: int, specs: Mapping[str, str]) -> str:
        """Create a flavor without a disk and return its id."""
        body = {"flavor": {"name": name, "vcpus": vcpus, "ram": memory_mib, "disk": 0}}
        flavor = str(self.nova.post("/flavors", json=body).json()["flavor"]["id"])
        self.nova.post(f"/flavors/{flavor}/os-extra_specs", json={"extra_specs": dict(specs)})
        return flavor

    def boot(self, name: str, flavor: str, image: str) -> str:
        """Ask for a server without network and return its id."""
        body = {"server": {"name": name, "flavorRef": flavor, "imageRef": image, "networks": "none"}}
        return str(self.nova.post("/servers", json=body).json()["server"]["id"])

    def delete_server(self, server: str) -> None:
        """Ask for a server's deletion; one that is gone is no error."""
        gone(self.nova.delete, f"/servers/{server}")

    def servers(self, prefix: str, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield servers by name prefix, page by page."""
        query = urlencode({"all_tenants": "1", "name": f"^{prefix}", "limit": "500", **filters})
        url: str | None = f"/servers/detail?{query}"
        while url:
            answer = self.nova.get(url).json()
            yield from answer["servers"]
            url = next((link["href"] for link in answer.get("servers_links", []) if link["rel"] == "next"), None)

    def changed_servers(self, prefix: str, since: datetime) -> Iterator[dict[str, Any]]:
        """Yield id and status of the servers that ended a change since a time.

        One short list for each status: a detailed list costs Nova much more than all of them.
        """
        # A deleted server's last change, to Nova, is the beginning of its deletion.
        for status, earlier in (("ACTIVE", 0), ("ERROR", 0), ("DELETED", DELETION_SECONDS)):
            moment = (since - timedelta(seconds=earlier)).strftime("%Y-%m-%dT%H:%M:%SZ")
            query = urlencode({"all_tenants": "1", "name": f"^{prefix}", "status": status, "changes-since": moment})
            for server in self.nova.get(f"/servers?{query}").json()["servers"]:
                yield {"id": server["id"], "status": status}

    # Placement ------------------------------------------------------------------------------------------------------

    def usages(self, provider: str) -> dict[str, int]:
        """Return what is claimed of a provider, by resource class."""
        return dict(self.placement.get(f"/resource_providers/{provider}/usages").json()["usages"])

    def claims(self, provider: str) -> set[str]:
        """Return the consumers that hold a part of a provider."""
        return set(self.placement.get(f"/resource_providers/{provider}/allocations").json()["allocations"])

    def claimed(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what a consumer claims: by provider, by resource class."""
        allocations = self.placement.get(f"/allocations/{consumer}").json()["allocations"]
        return {provider: dict(item["resources"]) for provider, item in allocations.items()}

    def claimed_mib(self, consumer: str, resource_class: str) -> int:
        """Return how much of a class a consumer claims, over all providers."""
        return sum(int(item.get(resource_class, 0)) for item in self.claimed(consumer).values())

    def free(self, provider: str) -> dict[str, int]:
        """Return what Placement may still give out of a provider, by resource class."""
        inventories = self.placement.get(f"/resource_providers/{provider}/inventories").json()["inventories"]
        used = self.usages(provider)
        return {
            name: int((item["total"] - item["reserved"]) * item["allocation_ratio"]) - used.get(name, 0)
            for name, item in inventories.items()
        }

    def set_trait(self, provider: str, trait: str, *, present: bool) -> None:
        """Give a provider a trait or take it away; somebody else's update at the same time is repeated."""
        self.placement.put(f"/traits/{trait}")
        url = f"/resource_providers/{provider}/traits"
        for attempt in range(ATTEMPTS * 3):
            body = self.placement.get(url).json()
            traits = set(body["traits"]) | {trait} if present else set(body["traits"]) - {trait}
            if traits == set(body["traits"]):
                return
            body["traits"] = sorted(traits)
            try:
                self.placement.put(url, json=body)
            except HttpError as error:
                # 500: Placement's transaction was the one that its database ended.
                if error.http_status not in (409, 500) or attempt == ATTEMPTS * 3 - 1:
                    raise

    # pondstack ------------------------------------------------------------------------------------------------------

    def memory_list(self, noun: str, **filters: str) -> list[dict[str, Any]]:
        """Return all pools, hosts, agents, slices or allocations; `noun` is the plural, with its path."""
        found: list[dict[str, Any]] = []
        key = noun.rpartition("/")[2]
        url: str | None = f"/{noun}" + (f"?{urlencode(filters)}" if filters else "")
        while url:
            answer = self.memory.get(url).json()
            found += answer[key]
            url = next((link["href"] for link in answer.get("links", []) if link["rel"] == "next"), None)
        return found

    def pools(self) -> list[dict[str, Any]]:
        """Return the pools with their free buffers, as far as one page has them."""
        return list(self.memory.get("/pools", microversion=BUFFERS_MICROVERSION).json()["pools"])

    def source_of_split(self, consumer: str) -> str | None:
        """Return who or what decided the split of a server; None when nobody has told."""
        try:
            return str(self.memory.get(f"/splits/{consumer}", microversion=SPLITS_MICROVERSION).json()["source"])
        except NotFound:
            return None

    def audit(self) -> dict[str, Any]:
        """Have the controller compare ledger, Placement, agents and devices; nothing is mended."""
        return dict(self.memory.post("/audits", json={"repair": False}).json())


def gone(call: Any, *arguments: Any) -> None:
    """Do a deletion of something that may have gone before."""
    try:
        call(*arguments)
    except NotFound:
        return
