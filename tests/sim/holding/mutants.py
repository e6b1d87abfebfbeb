"""Broken variants of host slices. Each must be caught, as those of tests.sim.mutants."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from pondstack.controller.pool import host_slices as keeping
from pondstack.controller.pool.host_slices import HostSliceKeeper
from pondstack.controller.reconcile.holders import Claims
from pondstack.domain.host_slices import Act, HoldingKey
from pondstack.domain.purpose import Purpose
from pondstack.ledger import slices as ledger
from pondstack.ledger.slices import Slices
from pondstack_agent.drivers import grant_records
from tests.sim.mutant import Mutant, lister

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


@contextmanager
def _orders_of_any_generation() -> Iterator[None]:
    with mock.patch.object(HoldingKey, "is_order", return_value=True):
        yield


LATE_ORDERS = Mutant(
    _orders_of_any_generation, "A host slice is assigned by an order from before its claim", ("delay", "duplicate")
)
"""Histories of late orders catch it (plan.draw_late_orders)."""


@mutant()
def host_slice_without_claim() -> Iterator[None]:
    """A host slice is assigned that Placement has not admitted."""
    with mock.patch.object(HostSliceKeeper, "_claim", return_value=None):
        yield


@mutant("delay", "pause_agent", "crash_agent")
def unwanted_host_slice() -> Iterator[None]:
    """A host slice is assigned that nobody wants any more: its command was late."""
    with mock.patch.object(Slices, "_check_purpose", return_value=None):
        yield


@mutant()
def guests_on_tiers() -> Iterator[None]:
    """Guests and tiers get slices of one node."""
    with ExitStack() as stack:
        for module in (ledger, keeping, grant_records):
            stack.enter_context(mock.patch.object(module, "check_node", return_value=None))
        yield


@mutant()
def claim_dropped_first() -> Iterator[None]:
    """The claim of a host slice goes before the host has given the slice back."""
    plain = keeping.steps

    def steps(*arguments: Any, **named: Any) -> Iterator[Any]:
        for step in plain(*arguments, **named):
            yield replace(step, act=Act.UNCLAIM) if step.act is Act.GIVE_BACK else step

    with mock.patch.object(keeping, "steps", steps):
        yield


@mutant()
def claim_kept() -> Iterator[None]:
    """The claim of a host slice stays for ever."""
    with mock.patch.object(HostSliceKeeper, "_unclaim", return_value=None):
        yield


@mutant()
def host_slice_kept() -> Iterator[None]:
    """A host slice stays although it is wanted no more."""
    with mock.patch.object(HostSliceKeeper, "_give_back", return_value="it goes on"):
        yield


@mutant()
def claims_of_hosts_unseen() -> Iterator[None]:
    """The reconciler takes host slices for nobody's, because they claim nothing of their host's own provider."""
    plain = Claims.of_consumer

    def of_consumer(self: Claims, item: Any) -> bool:
        return plain(self, replace(item, purpose=Purpose.GUEST))

    with mock.patch.object(Claims, "of_consumer", of_consumer):
        yield
