"""Host slices: a host holds slices of a pool for itself, and gives them back."""

from typing import Any

from tempest.lib import decorators, exceptions

from pondstack_tempest.base import MemoryTest


class HostSlicesRefusedTest(MemoryTest):
    """PUT /hosts/{name}/slices of what cannot be."""

    min_microversion = "1.11"

    @decorators.attr(type="negative")
    @decorators.idempotent_id("7f2a4f0c-93f4-4b3f-8e0c-5a0a6b1f2c51")
    def test_malformed_wishes_are_refused(self) -> None:
        """400: a negative count, an unknown purpose, slices for guests; 404: an unknown host."""
        client, host = self.memory("Hosts"), self.a_host()
        right = {"purpose": "base", "count": 0, "generation": host["generation"]}
        for wrong in ({"count": -1}, {"purpose": "fun"}, {"purpose": "guest"}, {"colour": "blue"}):
            self.assertRaises(exceptions.BadRequest, client.set_host_slices, host["name"], **{**right, **wrong})
        self.assertRaises(exceptions.NotFound, client.set_host_slices, self.unknown_uuid(), **right)


@decorators.serial
class HostSlicesTest(MemoryTest):
    """PUT /hosts/{name}/slices of a host that tests may break: it takes room from guests of the pool."""

    min_microversion = "1.11"

    @decorators.idempotent_id("0f9c1d5e-6b0e-4d0b-bb8a-3a9f1d7e2c52")
    def test_a_host_holds_a_slice_and_gives_it_back(self) -> None:
        """It is claimed, assigned and online; after that nothing of it is left."""
        host = self.an_expendable_host()
        [pool, *_] = self.memory("Hosts").show_host(host)["pools"]
        before = self._holding(host)
        if before.get("wanted"):
            raise self.skipException(f"{host} holds base slices already")
        self.addCleanup(self._want, host, pool, 0)
        self._want(host, pool, 1)
        self.until(lambda: self._holding(host).get("online") == 1, f"{host} holds no slice: {self._holding(host)}")
        [held] = self._allocations(host, pool)
        self.assertEqual("base", held["purpose"])
        self._want(host, pool, 0)
        self.until(lambda: not self._holding(host), f"{host} still holds a slice: {self._holding(host)}")
        self.assertEqual([], self._allocations(host, pool))

    def _want(self, host: str, pool: str, count: int) -> None:
        client = self.memory("Hosts")
        generation = client.show_host(host)["generation"]
        client.set_host_slices(host, purpose="base", count=count, pool_uuid=pool, generation=generation)

    def _holding(self, host: str) -> dict[str, Any]:
        held = self.memory("Hosts").show_host(host)["host_slices"]
        return next((dict(one) for one in held if one["purpose"] == "base"), {})

    def _allocations(self, host: str, pool: str) -> list[dict[str, Any]]:
        found = self.memory("Allocations").list_allocations(host=host, pool_uuid=pool)["allocations"]
        return [one for one in found if one["purpose"] == "base"]
