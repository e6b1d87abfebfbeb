"""What a host lends is sold once: real Nova, Placement, controller and agents; nova-manage audits in between."""

import io
import random
import threading
from contextlib import redirect_stdout
from typing import Any

import pytest
from nova.cmd import manage

from pondstack.domain.admission import LENT_CLASS, consumers
from pondstack.domain.errors import Conflict
from tests.functional.lenders import HOST_MIB, NovaWithLenders

LENT_MIB = 8192
NOVA_KEEPS_MIB = 512
RACES = 200
SHORT_RACES = 4


def audit_and_delete() -> None:
    """Do as `nova-manage placement audit --delete`."""
    with redirect_stdout(io.StringIO()):
        manage.PlacementCommands().audit(verbose=True, delete=True)


class TestLentMemory(NovaWithLenders):
    """One host of 12 GiB."""

    def test_what_is_lent_is_refused_to_guests_until_it_is_back(self) -> None:
        """Nova's periodic reserves it; restarts and a silent agent change nothing; keys dead, it is Nova's again."""
        begun = self.delegate(LENT_MIB)
        assert (begun["state"], begun["done_mib"]) == ("pending", 0)
        self.eventually(lambda: self._held(LENT_MIB))
        assert self.admitted_mib() == 0, "nothing is borrowed before nova-compute has reserved it"
        assert self.claimed_mib() == LENT_MIB
        self.boot(self.flavor(LENT_MIB), expected_state="ERROR")
        assert self.done(begun)["done_mib"] == LENT_MIB
        assert self.admitted_mib() == LENT_MIB
        assert self.memory()["reserved"] == NOVA_KEEPS_MIB + LENT_MIB
        assert self.claimed_mib() == 0
        audit_and_delete()
        self.stop_agent("host1")
        self.computes["host1"] = self.restart_compute_service(self.computes["host1"])
        self.reports()
        assert self.memory()["reserved"] == NOVA_KEEPS_MIB + LENT_MIB
        self.start_agent("host1")
        self.boot(self.flavor(LENT_MIB), expected_state="ERROR")
        self.api_of_controller.reclaim_host(name="host1", mib=LENT_MIB)
        self.eventually(lambda: self._held(0))
        self.reports()
        assert self.memory()["reserved"] == NOVA_KEEPS_MIB
        assert LENT_CLASS not in self._get_provider_inventory(self._get_provider_uuid_by_name("host1"))
        self.boot(self.flavor(LENT_MIB))

    def test_a_host_whose_memory_is_taken_waits(self) -> None:
        """Nothing is taken from the guest; the reason says so; another leader goes on; a reclaim ends the wait."""
        server = self.boot(self.flavor(LENT_MIB))
        begun = self.delegate(LENT_MIB)
        self.eventually(lambda: self._waits(begun, f"{LENT_MIB} MiB are to leave the host, and instances leave 3584"))
        self._held(0)
        self.stop_controller()
        self.run_controller()
        self._waits(begun, "instances leave")
        self.api_of_controller.reclaim_host(name="host1", mib=LENT_MIB)
        assert self.operation(begun)["state"] == "done"
        begun = self.delegate(LENT_MIB)
        self._delete_server(server)
        assert self.done(begun)["done_mib"] == LENT_MIB
        assert self.admitted_mib() == LENT_MIB

    def test_a_claim_that_an_audit_deletes_never_sells_twice(self) -> None:
        """A guest gets the memory in between: what was registered goes back, and the operation tells why."""
        begun = self.delegate(LENT_MIB)
        self.eventually(lambda: self._held(LENT_MIB))
        self.stop_controller()
        audit_and_delete()
        assert self.claimed_mib() == 0
        self.boot(self.flavor(LENT_MIB))
        self.run_controller()
        ended = self.done(begun)
        assert (ended["done_mib"], ended["reason"]) == (0, "instances got the memory while it was claimed")
        assert self.admitted_mib() == 0
        self.eventually(lambda: self._held(0))
        self.reports()
        assert self.memory()["reserved"] == NOVA_KEEPS_MIB

    def test_a_host_with_overcommit_lends_what_it_has(self) -> None:
        """By a ratio of 1.5, 8 GiB that leave are 12 GiB that may not be claimed: more than one consumer may have."""
        self.flags(ram_allocation_ratio=1.5)
        self.reports()
        begun = self.delegate(LENT_MIB)
        self.eventually(lambda: self._held(LENT_MIB))
        assert self.claimed_mib() == LENT_MIB * 3 // 2
        assert self.done(begun)["done_mib"] == LENT_MIB
        self.boot(self.flavor(HOST_MIB - NOVA_KEEPS_MIB), expected_state="ERROR")

    def test_a_few_races(self) -> None:
        """The short form of the 200 of the night."""
        self._race(range(SHORT_RACES))

    @pytest.mark.night
    @pytest.mark.timeout(3600)
    def test_200_races(self) -> None:
        """Delegate, boot, nova-compute's rounds, and audits that delete, at moments that a seed draws."""
        self._race(range(SHORT_RACES, SHORT_RACES + RACES))

    def _race(self, seeds: range) -> None:
        flavor = self.flavor(LENT_MIB)
        outcomes = {"lent": 0, "booted": 0}
        for seed in seeds:
            random_ = random.Random(f"lend against boot {seed}")
            outcome = self._one_race(random_, flavor)
            outcomes[outcome] += 1
        print(f"{len(seeds)} races: {outcomes}")

    def _one_race(self, rng: random.Random, flavor: str) -> str:
        ended = threading.Event()
        moments = {name: rng.uniform(0.0, 2.0) for name in ("delegate", "boot", "audit")}
        begun: list[dict[str, Any]] = []
        server: list[dict[str, Any]] = []

        def at(name: str, act: Any) -> threading.Thread:
            thread = threading.Timer(moments[name], act)
            thread.start()
            return thread

        wrong: list[Exception] = []

        def rounds() -> None:
            pause = random.Random(rng.random())
            while not ended.wait(pause.uniform(0.0, 0.7)):
                try:
                    self.reports()
                    self._never_oversold()
                except Exception as error:  # noqa: BLE001 (told by the test, not by its thread)
                    wrong.append(error)

        periodic = threading.Thread(target=rounds)
        periodic.start()
        body = self._build_server(flavor_id=flavor, networks="none")
        threads = [
            at("delegate", lambda: begun.append(self.delegate(LENT_MIB))),
            at("boot", lambda: server.append(self.api.post_server({"server": body}))),
            at("audit", audit_and_delete),
        ]
        for thread in threads:
            thread.join()
        try:
            booted = self._settled_state(server[0])
            self.eventually(lambda: self._raced(begun[0], booted))
        finally:
            ended.set()
            periodic.join()
        assert not wrong, wrong
        self._never_oversold()
        self._delete_server(server[0])
        self.eventually(lambda: self._reclaimed())
        self.eventually(lambda: self._free())
        return "booted" if booted else "lent"

    def _settled_state(self, server: dict[str, Any]) -> bool:
        def look() -> bool:
            status = self.api.get_server(server["id"])["status"]
            assert status in ("ACTIVE", "ERROR"), status
            return bool(status == "ACTIVE")

        return self.eventually(look)  # type: ignore[no-any-return]

    def _raced(self, begun: dict[str, Any], booted: bool) -> None:
        """Who lost knows it: the host waits or has given back, or the guest has no valid host."""
        now = self.operation(begun)
        if booted:
            assert now["state"] == "done" or "instances leave" in now["reason"], now
        else:
            assert (now["state"], now["done_mib"]) == ("done", LENT_MIB), now
        self._never_oversold()

    def _never_oversold(self) -> None:
        provider = self._get_provider_uuid_by_name("host1")
        # What may be borrowed first: it grows only after it is reserved.
        admitted = self.admitted_mib()
        held = self.placement.get(f"/resource_providers/{provider}/allocations").body["allocations"]
        ours = set(consumers("host1"))
        used = sum(item["resources"]["MEMORY_MB"] for uuid, item in held.items() if uuid not in ours)
        assert used + admitted <= HOST_MIB - NOVA_KEEPS_MIB

    def _reclaimed(self) -> None:
        try:
            self.api_of_controller.reclaim_host(name="host1", mib=LENT_MIB)
        except Conflict as error:  # it carries something else out
            raise AssertionError(error.message) from error

    def _free(self) -> None:
        self.reports()
        self._held(0)
        assert self.memory()["reserved"] == NOVA_KEEPS_MIB
        assert self.claimed_mib() == 0
        assert self.real_controller.resources.reader.host("host1").lend is None

    def _held(self, mib: int) -> None:
        assert self.lenders["host1"].hold().mib == mib

    def _waits(self, begun: dict[str, Any], why: str) -> None:
        now = self.operation(begun)
        assert now["state"] == "pending"
        assert why in now["reason"]
