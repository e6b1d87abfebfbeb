"""Deliberately broken variants of what keeps lent memory from being sold twice. Each must be caught."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

from pondstack.controller.lending import admission
from pondstack.controller.lending.admission import Claims
from pondstack.domain.admission import HostMemory, LentReport, Verdict
from pondstack.ledger.buffers import Buffers
from pondstack_agent.helper.client import HelperSilent
from pondstack_agent.lending.lending import Lending
from pondstack_nova.compute import lent_inventory
from pondstack_nova.compute.lent_inventory import Unknown
from tests.sim.mutant import Mutant, lister

MUTANTS: dict[str, Mutant] = {}
mutant = lister(MUTANTS)


@mutant()
def borrowable_at_once() -> Iterator[None]:
    """What a host says that it lends may be borrowed before Placement has heard of it."""
    plain = Buffers.delegate

    def delegate(self: Any, lender: Any, sequence: int, offsets_mib: Any, *, admitted: bool = True) -> Any:
        del admitted
        return plain(self, lender, sequence, offsets_mib)

    with mock.patch.object(Buffers, "delegate", delegate):
        yield


@mutant("compute_pause", "compute_crash")
def claimed_is_enough() -> Iterator[None]:
    """Buffers are admitted, and the claim goes, before nova-compute has reserved them."""
    plain = admission.judge

    def judge(*about: Any) -> Verdict:
        verdict = plain(*about)
        return Verdict.ADMITTED if verdict is Verdict.NOT_RESERVED else verdict

    with mock.patch.object(admission, "judge", judge):
        yield


@mutant()
def guests_are_overlooked() -> Iterator[None]:
    """What is reserved is admitted although guests have claimed it: nobody but us could have dropped our claim."""
    plain = admission.judge

    def judge(memory: Any, lent_mib: int, wanted: int) -> Verdict:
        return plain(replace(memory, used_mib=0), lent_mib, wanted)

    with mock.patch.object(admission, "judge", judge):
        yield


@mutant("pause_agent", "crash_agent", "cut")
def a_silent_agent_lends_nothing() -> Iterator[None]:
    """nova-compute gives back what is lent while the agent does not say that it is."""
    plain = lent_inventory.reserve

    def reserve(inventory: Any, before: Mapping[str, Any], lent: LentReport | Unknown) -> Any:
        return plain(inventory, before, LentReport(0, 1) if lent is Unknown.SILENT else lent)

    with mock.patch.object(lent_inventory, "reserve", reserve):
        yield


@mutant("lender_freeze")
def a_frozen_lender_lends_nothing() -> Iterator[None]:
    """The agent tells nova-compute that nothing is lent while the lender's process does not answer."""
    plain = Lending.get_lent

    def get_lent(self: Any) -> LentReport:
        try:
            return plain(self)
        except HelperSilent:
            return LentReport(0, 1)

    with mock.patch.object(Lending, "get_lent", get_lent):
        yield


@mutant()
def overcommit_is_forgotten() -> Iterator[None]:
    """By an allocation ratio of 1.5, memory that leaves is taken to take only as much of what may be claimed."""
    capacity = property(lambda self: self.total_mib * self.ratio - self.reserved_mib)
    plain = admission.claims
    with (
        mock.patch.object(HostMemory, "capacity_mib", capacity),
        mock.patch.object(admission, "claims", lambda host, memory, mib: plain(host, replace(memory, ratio=1.0), mib)),
    ):
        yield


@mutant()
def claims_stay() -> Iterator[None]:
    """What was claimed for a lend is never given up."""
    with mock.patch.object(Claims, "drop", return_value=None):
        yield
