"""Faults planted in the pure rules."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "set_aside_for_any_reason_goes_back",
        "pondstack/domain/transitions.py",
        "return bool(item.cause is Cause.AGENT_DOWN and item.host and item.allocation_uuid)",
        "return bool(item.host and item.allocation_uuid)",
        ("pondstack/tests/domain/test_transitions.py",),
        "memory that is lost, failed or in conflict goes back online when it is claimed again",
    ),
    Mutant(
        "failed_device_freed_on_release",
        "pondstack/domain/transitions.py",
        "if item.cause is Cause.DEVICE_FAILED:",
        "if item.cause is Cause.DEVICE_FAILED and item.host is None:",
        ("pondstack/tests/domain/test_transitions.py::test_what_is_on_a_failed_device_stays_aside_without_an_owner",),
        "slices of a failed device leave quarantine by themselves",
    ),
    Mutant(
        "flavor_share_ignored",
        "pondstack/domain/sizing.py",
        "percent = min(self._percent, features.specs.max_pool_percent)",
        "percent = self._percent",
        ("pondstack/tests/domain/test_sizing.py",),
        "a guest gets more pool memory than its flavor allows",
    ),
    Mutant(
        "no_local_memory",
        "pondstack/domain/sizing.py",
        "if specs.pool_mib >= memory_mib:",
        "if specs.pool_mib > memory_mib:",
        ("pondstack/tests/domain/test_sizing.py",),
        "a guest without any local memory",
    ),
    Mutant(
        "leaving_buffer_is_lent",
        "pondstack/domain/buffer_choice.py",
        "        and not item.leaving\n        and (item.promised_to == borrower",
        "        and (item.promised_to == borrower",
        ("pondstack/tests/domain/test_buffer_choice.py",),
        "a buffer that its lender wants back is lent anew",
    ),
    Mutant(
        "extents_overlap",
        "pondstack/domain/allocator.py",
        "rest = (Extent(run.start + size, run.count - size),) if run.count > size else ()",
        "rest = (Extent(run.start + size - 1, run.count - size),) if run.count > size else ()",
        ("pondstack/tests/domain/test_allocator.py",),
        "two extents of one allocation share a slice",
    ),
)
