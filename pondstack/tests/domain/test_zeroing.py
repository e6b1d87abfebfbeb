"""Whether a host may have slices of a device: somebody must zero them, and in doubt nobody does."""

import pytest

from pondstack.domain.zeroing import DeviceMemory, HostZeroing, refusal


@pytest.mark.parametrize(
    ("memory", "allowed"),
    [
        (DeviceMemory.FILE, {HostZeroing.HOST, HostZeroing.FILE, None}),
        (DeviceMemory.CXL, {HostZeroing.HOST, HostZeroing.FILE, HostZeroing.DEVICE, None}),
        (DeviceMemory.ELSEWHERE, {HostZeroing.HOST}),
        ("what a newer device says", {HostZeroing.HOST}),
        (None, {HostZeroing.HOST, HostZeroing.FILE, HostZeroing.DEVICE, None}),
    ],
)
def test_who_may_have_slices(memory: str | None, allowed: set[HostZeroing | None]) -> None:
    assert {host for host in (*HostZeroing, None) if not refusal(memory, host)} == allowed


@pytest.mark.parametrize("memory", [DeviceMemory.FILE, DeviceMemory.ELSEWHERE])
def test_the_refusal_says_what_to_set(memory: str) -> None:
    assert "[cxl] sanitize = host" in refusal(memory, HostZeroing.DEVICE)
