"""A world with two machines."""

import pytest

from pondstack.tests.ha.machines import Machine, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def a(world: World) -> Machine:
    return Machine(world, "a")


@pytest.fixture
def b(world: World) -> Machine:
    return Machine(world, "b")
