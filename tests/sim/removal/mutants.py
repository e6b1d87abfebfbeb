"""Broken variants of removals. Each must be caught, as those of tests.sim.mutants."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from pondstack.controller.pool.inventory import InventorySync
from pondstack.controller.pool.remover import Remover
from pondstack.domain import remains
from pondstack.ledger import failures
from tests.fixtures.memory import hosts
from tests.sim.mutant import Mutant, lister


@contextmanager
def _fences_of_any_generation() -> Iterator[None]:
    with mock.patch.object(failures, "check_generation", return_value=None):
        yield


LATE_FENCES = Mutant(_fences_of_any_generation, "A host is fenced by a request from before it was back", ())
"""Histories of late fences catch it (plan.draw_late_fences)."""

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


@mutant()
def host_removed_with_slices() -> Iterator[None]:
    """A host is removed while the ledger says that slices are its own."""
    with mock.patch.object(remains, "of_host", return_value=[]):
        yield


@mutant()
def pool_removed_in_use() -> Iterator[None]:
    """A pool is removed while guests have slices of it, and claims."""
    with (
        mock.patch.object(remains, "of_pool", return_value=[]),
        mock.patch.object(Remover, "_claims", return_value=[]),
    ):
        yield


@mutant()
def aggregates_are_left() -> Iterator[None]:
    """A host that was removed stays in the aggregates of the pools that it reached."""
    with mock.patch.object(Remover, "_take_out", return_value=False):
        yield


@mutant()
def reach_is_remembered() -> Iterator[None]:
    """The writer of Placement takes a host that comes back for the one that it knew, and does not join it."""
    with mock.patch.object(InventorySync, "_forget", return_value=None):
        yield


@mutant()
def removed_only_here() -> Iterator[None]:
    """A removal is answered, and the ledger keeps the host."""
    with mock.patch.object(hosts, "remove", return_value=None):
        yield
