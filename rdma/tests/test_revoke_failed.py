"""A device that does not end a key: the revocation is not done, and the memory is nobody else's, until it has."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from pondstack.domain.errors import InUse
from pondstack_rdma.errors import KeyRevoked, RevokeFailed
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.tcp import TcpTransport
from pondstack_rdma.tcp.lender import TcpLender
from pondstack_rdma.verbs import pyverbs_binding
from pondstack_rdma.verbs.lender import VerbsLender

SIZE = 4096
SECRET = b"page of tenant A"


class DeviceLender(TcpLender):
    """Its device fails to end keys so often."""

    failures = 0

    def _key_ended(self, key: Key) -> None:
        if self.failures:
            self.failures -= 1
            raise RevokeFailed(f"ibv_dereg_mr of key {key.number}: EIO")


@pytest.fixture
def lender() -> Iterator[DeviceLender]:
    with DeviceLender("127.0.0.1", "lender1", Keyring()) as made:
        yield made


def test_a_repetition_is_not_done_either(lender: DeviceLender) -> None:
    region = lender.register(SIZE)
    key = lender.export(region, "host-a")
    lender.store(region, 0, SECRET)
    lender.failures = 3
    for _ in range(3):
        with pytest.raises(RevokeFailed, match="EIO"):
            lender.revoke(key)
        assert lender.load(region, 0, len(SECRET)) == SECRET
    assert lender.revoke(key) is True
    assert lender.revoke(key) is False


def test_meanwhile_the_memory_is_nobody_elses(lender: DeviceLender) -> None:
    region = lender.register(SIZE)
    key = lender.export(region, "host-a")
    lender.store(region, 0, SECRET)
    lender.failures = 1
    with pytest.raises(RevokeFailed):
        lender.revoke(key)
    for borrower in ("host-a", "host-b"):
        with pytest.raises(RevokeFailed, match="did not end"):
            lender.export(region, borrower)
    with pytest.raises(InUse):
        lender.deregister(region)
    assert lender.revoke(key) is True
    lender.export(region, "host-b")
    assert lender.load(region, 0, len(SECRET)) == bytes(len(SECRET))


def test_it_opens_nothing_new(lender: DeviceLender) -> None:
    region = lender.register(SIZE)
    ticket, key = lender.admit("host-a"), lender.export(region, "host-a")
    lender.failures = 1
    with pytest.raises(RevokeFailed):
        lender.revoke(key)
    with TcpTransport().connect(Ticket.from_dict(ticket.to_dict()), 10.0) as link, pytest.raises(KeyRevoked):
        link.read(key, 0, 1)


def test_a_lender_that_closes_keeps_that_memory_mapped(lender: DeviceLender) -> None:
    held, other = lender.register(SIZE), lender.register(SIZE)
    lender.export(held, "host-a")
    memory = {region.number: lender._memory[region.number].view for region in (held, other)}
    lender.failures = 1
    lender.close()
    assert bytes(memory[held.number]) == bytes(SIZE)
    with pytest.raises(ValueError, match="released"):
        bytes(memory[other.number])


class Failed(Exception):
    """Stands for PyverbsError."""


class Mr:
    """Stands for a memory region of pyverbs, which keeps its handle when ibv_dereg_mr fails."""

    def __init__(self) -> None:
        self.fails, self.closed = True, 0

    def close(self) -> None:
        if self.fails:
            raise Failed("Failed to dereg MR. Errno: 5, Input/output error")
        self.closed += 1


def test_over_verbs_the_memory_region_is_kept_until_it_is_deregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyverbs_binding, "load", lambda: SimpleNamespace(Error=Failed))
    lender, key, mr = object.__new__(VerbsLender), Key(1, "host-a", SIZE, bytes(16)), Mr()
    lender._mrs = {key.number: mr}
    for _ in range(2):
        with pytest.raises(RevokeFailed, match=r"key 1 of borrower 'host-a'.*Errno: 5"):
            lender._key_ended(key)
    mr.fails = False
    lender._key_ended(key)
    assert (mr.closed, lender._mrs) == (1, {})
