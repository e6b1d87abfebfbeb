"""Each call of Placement, with the role that the installation guide gives, and with roles that do not suffice.

A real Placement decides, by its own default policies.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from keystoneauth1 import adapter, session
from placement.tests.functional.fixtures.placement import PlacementFixture

from pondstack.clients.placement import Inventory, Placement
from pondstack.domain.errors import Unavailable
from pondstack.domain.units import COMPUTE_TRAIT, RESOURCE_CLASS, SHARING_TRAIT

HOST, POOL, OURS, SERVER, GROUP = (str(UUID(int=number)) for number in range(1, 6))
SOME = Inventory(total=8192, reserved=0, step_size=1024, min_unit=1024, max_unit=8192)

CALLS: dict[str, Callable[[Placement], Any]] = {
    "ensure_resource_class": lambda found: found.ensure_resource_class(RESOURCE_CLASS),
    "ensure_provider": lambda found: found.ensure_provider(POOL, "pool"),
    "ensure_trait": lambda found: found.ensure_trait(POOL, SHARING_TRAIT),
    "provider_by_name": lambda found: found.provider_by_name("host"),
    "host_provider": lambda found: found.host_provider("host"),
    "with_trait": lambda found: found.with_trait(COMPUTE_TRAIT),
    "change_aggregates": lambda found: found.change_aggregates(POOL, lambda _present: {GROUP}),
    "candidates": lambda found: found.candidates({RESOURCE_CLASS: 1024}, ["!HW_CPU_X86_AVX"]),
    "members": lambda found: found.members(GROUP),
    "set_inventory": lambda found: found.set_inventory(POOL, RESOURCE_CLASS, SOME),
    "inventory": lambda found: found.inventory(POOL, RESOURCE_CLASS),
    "inventories": lambda found: found.inventories(POOL),
    "usages": lambda found: found.usages(POOL),
    "claim": lambda found: found.claim(POOL, RESOURCE_CLASS, {OURS: 1024}),
    "allocations_of": lambda found: found.allocations_of(POOL),
    "held_by": lambda found: found.held_by(OURS),
    "resize_claim": lambda found: found.resize_claim(SERVER, lambda held: held, force=True),
    "drop_claim": lambda found: found.drop_claim(OURS),
    "remove_provider": lambda found: found.remove_provider(POOL),
}
"""In an order in which each finds what it needs."""


@pytest.fixture
def as_role() -> Iterator[Callable[[str], Placement]]:
    with PlacementFixture() as fixture:

        def client(roles: str) -> Placement:
            headers = {"x-auth-token": "pondstack:service", "X-Roles": roles}
            return Placement(
                adapter.Adapter(
                    session.Session(additional_headers=headers), endpoint_override=fixture.endpoint, raise_exc=False
                )
            )

        yield client


def test_each_call_is_tried() -> None:
    """A new one without a line here fails."""
    public = {name for name, _ in inspect.getmembers(Placement, inspect.isfunction) if not name.startswith("_")}
    assert public == set(CALLS)


def prepare(found: Placement) -> None:
    """Have there be what others make: a host of Nova's and a server's claim."""
    found.ensure_resource_class(RESOURCE_CLASS)
    found.ensure_provider(HOST, "host")
    found.set_inventory(HOST, RESOURCE_CLASS, SOME)
    found.claim(HOST, RESOURCE_CLASS, {SERVER: 1024})


def test_the_role_service_suffices_for_each_call(as_role: Callable[[str], Placement]) -> None:
    prepare(as_role("admin"))
    found = as_role("service")
    for call in CALLS.values():
        call(found)
    assert found.held_by(SERVER) == {HOST: {RESOURCE_CLASS: 1024}}


@pytest.mark.parametrize("roles", ["other", "reader", "member,reader"])
def test_without_it_each_call_is_refused(as_role: Callable[[str], Placement], roles: str) -> None:
    prepare(as_role("admin"))
    found = as_role(roles)
    for call in CALLS.values():
        with pytest.raises(Unavailable, match=" 403 "):
            call(found)
    assert as_role("admin").provider_by_name("pool") is None
