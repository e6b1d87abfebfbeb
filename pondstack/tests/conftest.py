"""Real Placement in this process, on SQLite: Placement's own fixture, as Nova's tests use it."""

from collections.abc import Iterator

import pytest
from keystoneauth1 import adapter, session
from placement.tests.functional.fixtures.placement import PlacementFixture

from pondstack.clients.placement import Placement


@pytest.fixture
def placement_http() -> Iterator[adapter.Adapter]:
    """Placement's API behind a keystoneauth adapter; the administrator's token."""
    with PlacementFixture() as fixture:
        headers = {"x-auth-token": fixture.token}
        yield adapter.Adapter(
            session.Session(additional_headers=headers), endpoint_override=fixture.endpoint, raise_exc=False
        )


@pytest.fixture
def placement(placement_http) -> Placement:
    return Placement(placement_http)
