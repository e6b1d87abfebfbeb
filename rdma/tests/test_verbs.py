"""The verbs driver as far as it goes without an RDMA device; the rest is tested in emulated hosts (tests/hardware)."""

import logging
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pondstack_rdma.errors import NoDevice, RegistrationFailed, TransportGone, TransportTimeout
from pondstack_rdma.verbs import VerbsTransport, binding, port
from pondstack_rdma.verbs.endpoint import RETRIES, Endpoint, acknowledge_exponent
from pondstack_rdma.verbs.memory import PinnedMemory
from pondstack_rdma.verbs.requester import HUNG_UP, SILENT
from pondstack_rdma.verbs.status import FLUSHED, UNANSWERED, failure

HERE = Endpoint(17, 4711, "0000:0000:0000:0000:0000:ffff:0a4d:0001", 5, 16)


@pytest.fixture
def _fresh() -> Iterator[None]:
    """Nobody has loaded pyverbs."""
    binding.load.cache_clear()
    yield
    binding.load.cache_clear()


@pytest.mark.usefixtures("_fresh")
def test_without_pyverbs_the_error_says_what_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyverbs", None)
    handlers = logging.getLogger().handlers[:]
    with pytest.raises(NoDevice, match=r"python3-pyverbs.*`python3 -c 'import pyverbs.qp'`"):
        VerbsTransport().lend("lender1")
    assert logging.getLogger().handlers == handlers


class Failed(Exception):
    """Stands for PyverbsError."""


class Device:
    """One device with one port, as pyverbs shows it."""

    def __init__(self, state: int = binding.PORT_ACTIVE, gid_type: int = binding.ROCE_V2) -> None:
        self.name, self.closed = "rxe0", False
        self._state, self._type = state, gid_type

    def query_device(self) -> Any:
        return SimpleNamespace(phys_port_cnt=1, max_qp_rd_atom=128, max_qp_init_rd_atom=64)

    def query_port(self, _number: int) -> Any:
        return SimpleNamespace(state=self._state, active_mtu=3, gid_tbl_len=8)

    def query_gid_table(self, _most: int) -> list[Any]:
        gids = {0: "fe80:0000:0000:0000:5054:00ff:fe77:0001", 1: HERE.gid}
        return [
            SimpleNamespace(port_num=1, gid_type=self._type, gid_index=index, gid_str=lambda gid=gid: gid)
            for index, gid in gids.items()
        ]

    def close(self) -> None:
        self.closed = True


def found(monkeypatch: pytest.MonkeyPatch, *devices: Device) -> None:
    """Let a host have these devices."""
    listed = [SimpleNamespace(name=device.name.encode()) for device in devices]
    verbs = SimpleNamespace(get_device_list=lambda: listed, Context=lambda name: devices[0], Error=Failed)  # noqa: ARG005
    monkeypatch.setattr(binding, "load", lambda: verbs)


def test_without_a_device_the_error_says_what_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch)
    with pytest.raises(NoDevice, match="`rdma link` and `ibv_devices`"):
        port.find_port()


@pytest.mark.parametrize(
    ("device", "address", "why"),
    [
        (Device(state=1), "", r"rxe0 port 1 is not active.*`rdma link`"),
        (Device(gid_type=1), "", "no GID.*`show_gids`"),
        (Device(), "10.77.0.9", r"GID of 10.77.0.9.*rxe0 port 1 has 10.77.0.1.*ports/\*/gids"),
    ],
)
def test_a_port_that_does_not_do_is_named(
    monkeypatch: pytest.MonkeyPatch, device: Device, address: str, why: str
) -> None:
    found(monkeypatch, device)
    with pytest.raises(NoDevice, match=why):
        port.find_port(address)
    assert device.closed


@pytest.mark.parametrize(("address", "index"), [("", 1), ("10.77.0.1", 1), ("fe80::5054:ff:fe77:1", 0)])
def test_gid_and_mtu_are_the_devices(monkeypatch: pytest.MonkeyPatch, address: str, index: int) -> None:
    found(monkeypatch, Device())
    chosen = port.find_port(address)
    assert (chosen.gid_index, chosen.mtu, chosen.max_reads) == (index, 3, 64)


def test_an_endpoint_crosses_json() -> None:
    assert Endpoint.from_dict(HERE.to_dict()) == HERE


@pytest.mark.parametrize(
    "change", [{"number": 2**24}, {"number": -1}, {"gid": "rxe0"}, {"gid": None}, {"mtu": 0}, {"max_reads": "x"}]
)
def test_nonsense_is_no_endpoint(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Endpoint.from_dict(HERE.to_dict() | change)
    with pytest.raises(ValueError):
        Endpoint.from_dict(None)


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.0, 10.0, 60.0])
def test_all_tries_end_within_the_time_out(seconds: float) -> None:
    tries = (RETRIES + 1) * 4.096e-6
    exponent = acknowledge_exponent(seconds)
    assert tries * 2**exponent <= seconds < tries * 2 ** (exponent + 1)


def test_a_time_out_that_no_device_knows_is_the_nearest() -> None:
    assert acknowledge_exponent(0.0) == 8
    assert acknowledge_exponent(10.0**6) == 21


@pytest.mark.parametrize("status", [UNANSWERED, SILENT])
def test_no_answer_is_a_time_out(status: int) -> None:
    assert type(failure("the link", status, 2.0)) is TransportTimeout


@pytest.mark.parametrize("status", [FLUSHED, HUNG_UP, 4])
def test_any_other_failure_is_gone(status: int) -> None:
    assert type(failure("the link", status, 2.0)) is TransportGone


def test_pinned_memory_is_all_there_and_zero() -> None:
    memory = PinnedMemory(8192)
    assert bytes(memory.view) == bytes(8192)
    memory.view[0] = 1
    for _ in range(2):
        memory.close()


def test_a_host_without_room_gives_no_memory() -> None:
    with pytest.raises(RegistrationFailed, match="are never lent"):
        PinnedMemory(2**20, room=lambda: (2**20, 2**24))
