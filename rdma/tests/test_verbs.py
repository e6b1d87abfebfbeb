"""The verbs driver as far as it goes without an RDMA device; the rest is tested in emulated hosts (tests/hardware)."""

import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pondstack_rdma.errors import NoDevice, RegistrationFailed, TransportGone, TransportTimeout, WrongBorrower
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.model import Ticket
from pondstack_rdma.verbs import VerbsTransport, handshake, port, pyverbs_binding
from pondstack_rdma.verbs.cm_attrs import RETRIES, acknowledge_exponent
from pondstack_rdma.verbs.handshake import Welcome
from pondstack_rdma.verbs.memory import PinnedMemory
from pondstack_rdma.verbs.requester import HUNG_UP, SILENT
from pondstack_rdma.verbs.status import FLUSHED, UNANSWERED, failure

HERE = "0000:0000:0000:0000:0000:ffff:0a4d:0001"
TICKET = Ticket("verbs", "10.77.0.1:4711", "host1", bytes(range(16)))


@pytest.fixture
def _fresh() -> Iterator[None]:
    """Nobody has loaded pyverbs."""
    pyverbs_binding.load.cache_clear()
    yield
    pyverbs_binding.load.cache_clear()


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

    def __init__(self, state: int = pyverbs_binding.PORT_ACTIVE, gid_type: int = pyverbs_binding.ROCE_V2) -> None:
        self.name, self.closed = "rxe0", False
        self._state, self._type = state, gid_type

    def query_device(self) -> Any:
        return SimpleNamespace(phys_port_cnt=1, max_qp_rd_atom=128, max_qp_init_rd_atom=64)

    def query_port(self, _number: int) -> Any:
        return SimpleNamespace(state=self._state, active_mtu=3, gid_tbl_len=8)

    def query_gid_table(self, _most: int) -> list[Any]:
        gids = {0: "fe80:0000:0000:0000:5054:00ff:fe77:0001", 1: HERE}
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
    monkeypatch.setattr(pyverbs_binding, "load", lambda: verbs)


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


@pytest.mark.parametrize(
    ("host", "address"),
    [("", "10.77.0.1"), ("10.77.0.1", "10.77.0.1"), ("fe80::5054:ff:fe77:1", "fe80::5054:ff:fe77:1")],
)
def test_the_device_of_an_address_is_found(monkeypatch: pytest.MonkeyPatch, host: str, address: str) -> None:
    found(monkeypatch, Device())
    chosen = port.find_port(host)
    assert (chosen.address, chosen.max_rd_atomic) == (address, 64)


def test_a_request_tells_who_asks_without_the_secret() -> None:
    request = handshake.request(TICKET)
    assert len(request) <= 56
    assert TICKET.secret not in request
    keyring = Keyring(lambda size: bytes(range(size)))
    keyring.admit("host2")
    keyring.admit("host1")
    assert keyring.borrower_of(handshake.proof_in(request + bytes(20))) == "host1"
    for wrong in (
        replace(TICKET, secret=b""),
        replace(TICKET, secret=TICKET.secret + b"0"),
        replace(TICKET, borrower="x"),
    ):
        with pytest.raises(WrongBorrower, match="ask for a new one"):
            keyring.borrower_of(handshake.proof_in(handshake.request(wrong)))


@pytest.mark.parametrize("nonsense", [b"", bytes(56), b"pnd1", b"pnd1" + bytes(31), b"pnd0" + bytes(52)])
def test_nonsense_is_no_request_and_no_welcome(nonsense: bytes) -> None:
    with pytest.raises(TransportGone):
        handshake.proof_in(nonsense)
    with pytest.raises(ValueError):
        Welcome.unpack(nonsense[:16])


def test_a_welcome_crosses_private_data() -> None:
    welcome = Welcome(65535, 2**64 - 1, 2**32 - 1)
    assert Welcome.unpack(welcome.pack().ljust(196, b"\0")) == welcome


def test_a_refusal_crosses_private_data() -> None:
    refused = handshake.refused(handshake.refusal(WrongBorrower("not yours")).ljust(148, b"\0"))
    assert (type(refused), refused.message) == (WrongBorrower, "not yours")
    long = handshake.refusal(RegistrationFailed("\u00e9" * 200))
    assert len(long) <= 148
    assert type(handshake.refused(long)) is RegistrationFailed


@pytest.mark.parametrize("nonsense", [b"", bytes(148), b"\xff" * 148, b"pondstack.no_such\0text"])
def test_a_refusal_that_is_not_known_is_gone(nonsense: bytes) -> None:
    assert type(handshake.refused(nonsense)) is TransportGone


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
