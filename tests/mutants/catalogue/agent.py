"""Faults planted in the hosts' agents."""

from tests.mutants.mutant import Mutant

_AGENT = "agent/tests"

MUTANTS = (
    Mutant(
        "epoch_forgotten",
        "agent/pondstack_agent/epoch.py",
        '                self._records.put(_KEY, {"seen": epoch})\n',
        "",
        (f"{_AGENT}/test_epoch.py",),
        "after a restart an agent obeys a deposed leader",
    ),
    Mutant(
        "grant_of_an_old_controller",
        "agent/pondstack_agent/pool/attach.py",
        "            self._epoch.check(grant.epoch)\n",
        "",
        (f"{_AGENT}/test_endpoint.py::test_a_grant_of_an_old_controller_is_given_back",),
        "memory is onlined on a deposed leader's grant",
    ),
    Mutant(
        "offline_on_an_old_report",
        "agent/pondstack_agent/endpoint.py",
        "if report_sequence is not None and self._operations.online_at(allocation_uuid) > report_sequence:",
        "if report_sequence is not None and self._operations.online_at(allocation_uuid) < 0:",
        (f"{_AGENT}/test_endpoint.py::test_an_offline_that_rests_on_an_old_report_changes_nothing",),
        "memory that came online just after the report is taken away",
    ),
    Mutant(
        "first_byte_only",
        "agent/pondstack_agent/drivers/emulated.py",
        "if first_written_byte(device.path, index * slice_bytes, (index + 1) * slice_bytes) is not None:",
        "if first_written_byte(device.path, index * slice_bytes, index * slice_bytes + 1) is not None:",
        (f"{_AGENT}/drivers/test_drivers.py::test_a_byte_of_somebody_anywhere_in_a_slice_refuses_it",),
        "another guest's bytes are handed on unless they are the first ones of a slice",
    ),
    Mutant(
        "permission_of_another_allocation",
        "agent/pondstack_agent/drivers/grant_records.py",
        "if entry is None or (entry.host, entry.tag) != (host, grant.allocation_uuid):",
        "if entry is None or entry.host != host:",
        (f"{_AGENT}/drivers/test_contract.py::test_attach_needs_the_permission_of_this_host_and_allocation",),
        "a host onlines slices that are let in for another of its allocations",
    ),
    Mutant(
        "late_export_makes_a_key",
        "agent/pondstack_agent/lending/buffer_table.py",
        "if wanted < live or wanted <= entry.ended:",
        "if wanted < live:",
        (f"{_AGENT}/lending/test_buffer_table.py::test_a_late_export_makes_no_key",),
        "a late export makes a key of a generation that has been ended",
    ),
    Mutant(
        "more_taken_back_than_asked",
        "agent/pondstack_agent/lending/reclaim_operation.py",
        "if item.index in freed][:missing]",
        "if item.index in freed]",
        (f"{_AGENT}/lending/test_reclaim_operation.py::test_what_the_controller_frees_goes_back",),
        "a host takes back more than it was told to",
    ),
    Mutant(
        "late_prepare_opens",
        "agent/pondstack_agent/borrower/borrower.py",
        "if key.number <= held.released.get(index, 0):",
        "if key.number <= 0:",
        (f"{_AGENT}/borrower/test_borrower.py::test_a_late_prepare_does_not_bring_back_what_was_given_back",),
        "a key that was given back comes back late: its borrower writes into another's buffer",
    ),
    Mutant(
        "durable_before_the_disk",
        "agent/pondstack_agent/pagestore/exporter.py",
        "        if flags & nbd.FUA:\n            self._pages.flush(self._flush_seconds)\n",
        "",
        (f"{_AGENT}/pagestore/test_exporter.py::test_nothing_is_told_to_be_durable_before_the_mirror_has_it[True]",),
        "a write with FUA is answered before it is durable",
    ),
    Mutant(
        "memory_without_a_region_released",
        "agent/pondstack_agent/drivers/cxl/driver.py",
        "if self._allocations.of_this_boot(record):\n                raise DeviceFailed(",
        "if record is None:\n                raise DeviceFailed(",
        (f"{_AGENT}/drivers/cxl/test_recover.py::test_memory_of_this_boot_stays_on_record",),
        "memory whose region is gone, and that the kernel may use, counts as released",
    ),
    Mutant(
        "room_counted_twice",
        "agent/pondstack_agent/mitigation/room.py",
        "others = sum(size for key, size in self._reserved.items() if key != name)",
        "others = 0",
        (f"{_AGENT}/mitigation/test_room.py::test_two_at_once_cannot_take_the_same_room",),
        "two mitigations count on the same local memory",
    ),
    Mutant(
        "left_lease_comes_late",
        "agent/pondstack_agent/pagestore/leases.py",
        "                if lease is None:\n                    self._ended.add(name)\n",
        "",
        (f"{_AGENT}/pagestore/test_leases.py::test_what_is_left_before_it_came_does_not_come",),
        "a lease that was given up before it arrived is used when it comes late",
    ),
)
