"""Base of the functional tests: nova-api, conductor, scheduler, computes and Placement in one process."""

import importlib
import sqlite3
import sys
import uuid
from typing import Any

import fixtures
import nova.conf
from nova.tests.functional import fixtures as placement_fixtures

from pondstack.domain.units import DEFAULT_SLICE_MIB, RESOURCE_CLASS, SHARING_TRAIT
from pondstack.rpc.wire import PoolView, UsedSplit
from pondstack_nova.scheduler import snapshot, split_view, used_splits
from tests.functional.stand_in import Serving, StandInController
from tests.functional.waits import PatientHelpers

CONF = nova.conf.CONF
INVENTORY_VERSION = "1.15"


class OpenDatabases(fixtures.Fixture):
    """Keeps one connection to each of Nova's SQLite files open, and to Placement's.

    Nova opens one per transaction. With the last one SQLite removes the write-ahead log, and whoever opens the file
    at that moment gets "database is locked" at once, whatever the time-out.
    """

    def _setUp(self) -> None:
        # The package's attribute of this name is the top package "nova", so it can't be imported by a statement.
        nova_fixtures = importlib.import_module("nova.tests.fixtures.nova")
        make = nova_fixtures._use_file_backed_sqlite_with_wal

        def make_and_hold(name: str) -> tuple[str, str]:
            url, path = make(name)
            connection = sqlite3.connect(path, check_same_thread=False)
            connection.execute("SELECT * FROM sqlite_master")
            self.addCleanup(connection.close)
            return url, path

        for user in (nova_fixtures, placement_fixtures):  # Placement's fixture has the name for itself
            self.useFixture(fixtures.MockPatchObject(user, "_use_file_backed_sqlite_with_wal", make_and_hold))


class NovaWithPondstack(PatientHelpers):
    """Nova with pondstack's scheduler side enabled, two fake hosts, and a stand-in for the controller.

    One pool of `slices` slices is reached by both hosts; `self.pool` is its UUID.
    """

    compute_driver = "fake.MediumFakeDriver"
    hosts: tuple[str, ...] = ("host1", "host2")
    slices = 8
    buffer_slices = 1

    def setUp(self) -> None:
        """Configure, start Nova, the stand-in and the computes."""
        self.flags(api_paste_config=f"{sys.prefix}/etc/nova/api-paste.ini", group="wsgi")
        self.configure_scheduler()
        self.useFixture(OpenDatabases())
        super().setUp()
        # A fixture's bus cannot be slow on purpose; a loaded test machine can.
        self.flags(split_timeout_ms=5000, first_view_seconds=60.0, snapshot_interval_seconds=1.0, group="pondstack")
        self.start_controller()
        self.addCleanup(snapshot.reset)
        self.addCleanup(split_view.reset)
        self.addCleanup(used_splits.reset)
        for host in self.hosts:
            self.start_service("compute", host=host)
        self.pool = self.start_pool()

    def configure_scheduler(self) -> None:
        """Enable pondstack's filter and weighers."""
        self.flags(
            available_filters=["nova.scheduler.filters.all_filters", "pondstack_nova.filter.PondFilter"],
            enabled_filters=["ComputeFilter", "PondFilter"],
            weight_classes=["pondstack_nova.weigher.all_weighers"],
            group="filter_scheduler",
        )

    def start_pool(self) -> str:
        """Make the pool that all hosts reach; returns its UUID."""
        self.controller.hosts.extend(self.hosts)
        return self.make_pool("pool0", self.slices, self.hosts)

    def start_controller(self) -> None:
        """Start the controller; it ends with the test at the latest."""
        self.controller = StandInController()
        self.controller_server: Serving | None = Serving(self.controller, CONF)
        self.addCleanup(self.stop_controller)

    def stop_controller(self) -> None:
        """Stop the controller: its calls go unanswered."""
        self.controller.hold.set()
        if self.controller_server is not None:
            server, self.controller_server = self.controller_server, None
            server.stop()

    def lose_the_view(self) -> None:
        """Have the scheduler be one that never had an answer of the controller on splits."""
        self.flags(first_view_seconds=0.1, group="pondstack")
        self.controller.hold.clear()
        split_view.reset()

    def regain_the_view(self) -> None:
        """Have the controller answer again."""
        self.controller.hold.set()
        self.flags(first_view_seconds=60.0, group="pondstack")
        split_view.reset()

    def make_pool(self, name: str, slices: int, hosts: tuple[str, ...]) -> str:
        """Make a pool's provider in Placement, as the controller does, and show it in the snapshot."""
        inventory = {
            "total": slices * DEFAULT_SLICE_MIB,
            "reserved": self.buffer_slices * DEFAULT_SLICE_MIB,
            "step_size": DEFAULT_SLICE_MIB,
            "min_unit": DEFAULT_SLICE_MIB,
            "max_unit": slices * DEFAULT_SLICE_MIB,
            "allocation_ratio": 1.0,
        }
        pool = self.make_shared(name, RESOURCE_CLASS, inventory, hosts)
        self.controller.pools.append(
            PoolView(pool, name, "up", DEFAULT_SLICE_MIB, slices, slices, slices, self.buffer_slices, hosts)
        )
        return pool

    def make_shared(self, name: str, resource_class: str, inventory: dict[str, Any], hosts: tuple[str, ...]) -> str:
        """Make a provider in Placement that hosts share; returns its UUID."""
        shared, aggregate = str(uuid.uuid4()), str(uuid.uuid4())
        self.placement.put(f"/resource_classes/{resource_class}", None, version="1.7")
        self._call("post", "/resource_providers", {"name": name, "uuid": shared}, "1.20")
        url = f"/resource_providers/{shared}"
        self._call(
            "put",
            f"{url}/inventories",
            {"resource_provider_generation": 0, "inventories": {resource_class: inventory}},
            INVENTORY_VERSION,
        )
        self._call("put", f"{url}/traits", {"resource_provider_generation": 1, "traits": [SHARING_TRAIT]}, "1.6")
        for provider in (shared, *(self._get_provider_uuid_by_name(host) for host in hosts)):
            self._add_aggregate(provider, aggregate)
        return shared

    def flavor(self, memory_mib: int = 4096, **specs: str) -> str:
        """Make a flavor; keywords are `pond:` specs. Returns its id."""
        extra_specs = {f"pond:{key}": value for key, value in specs.items()}
        return str(self._create_flavor(memory_mb=memory_mib, vcpu=1, disk=1, ephemeral=0, extra_spec=extra_specs))

    def boot(self, flavor: str, expected_state: str = "ACTIVE", **kwargs: Any) -> dict[str, Any]:
        """Boot a server without networks; returns it in the expected state."""
        server: dict[str, Any] = self._create_server(
            flavor_id=flavor, networks="none", expected_state=expected_state, **kwargs
        )
        return server

    def claim(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what a consumer has in Placement: provider name to memory classes and their MiB."""
        allocations = self.placement.get(f"/allocations/{consumer}").body["allocations"]
        names = {provider["uuid"]: provider["name"] for provider in self._get_all_providers()}
        return {
            names[provider]: {
                resource: amount
                for resource, amount in allocation["resources"].items()
                if resource == "MEMORY_MB" or resource.startswith("CUSTOM_POND_")
            }
            for provider, allocation in allocations.items()
        }

    def told_of(self, server: dict[str, Any], source: str | None = None) -> UsedSplit:
        """Return what the controller is told that a server was placed with, which is after it was placed."""

        def told() -> UsedSplit:
            found = self.controller.used[server["id"]]
            assert source in (None, found.source), f"{server['id']}: {found}"
            return found

        found: UsedSplit = self._wait_for_assert(told)
        return found

    def fault_of(self, server: dict[str, Any]) -> str:
        """Return the message of a server's fault, which Nova writes after the server's state is ERROR."""
        return str(self._wait_for_assert(lambda: self.api.get_server(server["id"])["fault"]["message"]))

    def pool_used_mib(self) -> int:
        """Return what is claimed of the pool in Placement."""
        return int(self._get_provider_usages(self.pool)[RESOURCE_CLASS])

    def log_text(self) -> str:
        """Return all that was logged so far."""
        return str(self.stdlog.logger.output)

    def _clear_attrs(self) -> None:
        """Clear as Nova's base does, all but the attribute that pytest sets for the running method."""
        for key in [key for key in vars(self) if not key.startswith("_") and key != self._testMethodName]:
            delattr(self, key)

    def _add_aggregate(self, provider: str, aggregate: str) -> None:
        url = f"/resource_providers/{provider}"
        present = self.placement.get(f"{url}/aggregates", version="1.19").body
        body = {
            "aggregates": [*present["aggregates"], aggregate],
            "resource_provider_generation": present["resource_provider_generation"],
        }
        self._call("put", f"{url}/aggregates", body, "1.19")

    def _call(self, verb: str, url: str, body: dict[str, Any], version: str) -> None:
        answer = getattr(self.placement, verb)(url, body, version=version)
        assert answer.status < 300, f"{verb} {url}: {answer.body}"
