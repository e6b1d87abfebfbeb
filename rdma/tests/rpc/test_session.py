"""The agreement on keys, and what opens under them."""

import pytest

from pondstack.domain.errors import BadRequest, Refused
from pondstack_rdma.rpc.frame import RequestHeader
from pondstack_rdma.rpc.sealer import FrameOpener, FrameSealer
from pondstack_rdma.rpc.session import KeyPair, Kind, Session

HEADER = RequestHeader(0, 1, 1, 0, 1, 19)


def both(name: str = "one") -> tuple[Session, Session]:
    """Return a client's end and a server's."""
    client, server = KeyPair(), KeyPair()
    return client.call(server.public, name), server.serve(client.public, name)


def test_each_end_opens_what_the_other_one_seals_and_nothing_else() -> None:
    client, server = both()
    sealed = client.seal(Kind.PART, 3, 7, b"report", b"about")
    assert server.open(Kind.PART, 3, 7, sealed, b"about") == b"report"
    assert b"report" not in sealed
    assert client.open(Kind.PART, 3, 7, sealed, b"about") is None, "reflected"
    assert server.open(Kind.HEADER, 3, 7, sealed, b"about") is None
    assert server.open(Kind.PART, 2, 7, sealed, b"about") is None
    assert server.open(Kind.PART, 3, 8, sealed, b"about") is None
    assert server.open(Kind.PART, 3, 7, sealed, b"") is None
    assert server.open(Kind.PART, 3, 7, sealed[:-1], b"about") is None
    assert server.open(Kind.PART, 3, 7, b"", b"about") is None


def test_a_session_of_another_name_or_of_other_keys_opens_nothing() -> None:
    client, server = KeyPair(), KeyPair()
    sealed = client.call(server.public, "one").seal(Kind.PART, 0, 1, b"x")
    assert server.serve(client.public, "one").open(Kind.PART, 0, 1, sealed) == b"x"
    assert server.serve(client.public, "two").open(Kind.PART, 0, 1, sealed) is None
    assert KeyPair().serve(client.public, "one").open(Kind.PART, 0, 1, sealed) is None
    assert server.serve(KeyPair().public, "one").open(Kind.PART, 0, 1, sealed) is None


@pytest.mark.parametrize("public", [b"", bytes(31), bytes(32), (1).to_bytes(32, "little"), bytes(33)])
def test_what_is_no_public_key_is_refused(public: bytes) -> None:
    """Of zero and one all multiples are the same: who sends them knows what is agreed on without a key."""
    with pytest.raises(BadRequest, match="public key"):
        KeyPair().serve(public, "one")
    with pytest.raises(BadRequest, match="public key"):
        KeyPair().call(public, "one")


def test_no_number_comes_twice() -> None:
    sealer = FrameSealer(both()[0], 0)
    numbers = [sealer.part(b"x")[0], RequestHeader.unpack(sealer.header(HEADER)[:48]).number, sealer.part(b"x")[0]]
    assert numbers == [1, 2, 3]


class Slot:
    """Both ends of a slot."""

    def __init__(self) -> None:
        client, server = both()
        self.sealer = FrameSealer(client, 0)
        self.told: list[str] = []
        self.opener = FrameOpener(server, 0, RequestHeader, self._note, torn_seconds=1.0)

    def _note(self, error: Exception) -> None:
        assert isinstance(error, Refused)
        self.told.append(error.message)


def test_a_header_opens_until_it_or_a_newer_one_is_accepted() -> None:
    slot = Slot()
    first, second = (slot.sealer.header(HEADER._replace(sequence=number)) for number in (1, 2))
    for _ in range(2):
        assert slot.opener.header(first, 0.0) == HEADER._replace(number=1)
    newer = slot.opener.header(second, 0.0)
    assert newer == HEADER._replace(number=2, sequence=2)
    slot.opener.accept(newer)
    assert slot.opener.header(first, 0.0) is None
    assert slot.opener.header(second, 0.0) is None


def test_what_does_not_open_is_told_once_when_it_stays() -> None:
    slot = Slot()
    header = slot.sealer.header(HEADER)
    torn, forged = header[:-1] + b"?", header[:-2] + b"??"
    for found, now in ((torn, 0.0), (torn, 0.9), (forged, 1.0), (torn, 1.9), (torn, 2.8)):
        assert slot.opener.header(found, now) is None
        assert slot.told == []
    for now in (2.9, 3.0, 9.0):
        assert slot.opener.header(torn, now) is None
    assert len(slot.told) == 1
    assert "slot 0 of session one" in slot.told[0]
    assert slot.opener.header(header, 10.0) is not None


def test_a_part_that_does_not_open_is_told_when_it_stays() -> None:
    slot = Slot()
    number, sealed = slot.sealer.part(b"payload")
    header = HEADER._replace(part=number)
    for now in (0.0, 1.0, 2.0):
        assert slot.opener.part(header, sealed[:-1], now) is None
    assert len(slot.told) == 1
    assert slot.opener.part(header, sealed, 3.0) == b"payload"
