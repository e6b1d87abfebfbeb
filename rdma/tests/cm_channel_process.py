"""Uses a build of rdma/native's Channel, with the fake librdmacm of fake_rdmacm.c. Arguments: the module, a seed.

For a build with sanitizers: those end the process at the first fault. Both sides of connections run on it, too.
"""

import importlib.machinery
import importlib.util
import random
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rack.wait import wait_until
from pondstack_rdma.errors import NoDevice, TransportGone, TransportTimeout, WrongBorrower
from pondstack_rdma.model import Ticket
from pondstack_rdma.verbs import handshake
from pondstack_rdma.verbs.cm import Channel, ChannelType, CmId, Event
from pondstack_rdma.verbs.cm_attrs import CmAttrs
from pondstack_rdma.verbs.connection import Connection
from pondstack_rdma.verbs.handshake import Welcome
from pondstack_rdma.verbs.listener import AdmittedBorrower, Listener

HERE = "127.0.0.1"
NO_DEVICE, NO_WAY, SILENT = ("127.0.0.2:1", "127.0.0.5:1"), "127.0.0.3:1", "127.0.0.4:1"
SECONDS = 10.0
LONG_SECONDS = 60.0
TICKET = Ticket("verbs", "", "host1", bytes(range(16)))
WELCOME = Welcome(4711, 2**40, 17)


def load(path: str) -> ChannelType:
    """Load a build that is not where Python would look for it; the package uses it from now on."""
    loader = importlib.machinery.ExtensionFileLoader("pondstack_rdma._cm", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[loader.name] = module
    made: ChannelType = module.Channel
    return made


class QueuePair:
    """Stands for a queue qp of the lender."""

    last = 100

    def __init__(self) -> None:
        QueuePair.last += 1
        self.qpn, self.closed = QueuePair.last, False

    def close(self) -> None:
        """Remember it."""
        self.closed = True


class Lender:
    """Lets in whoever has the right proof; at most `max_rd_atomic` reads at once."""

    def __init__(self, max_rd_atomic: int = 8) -> None:
        self.qps: list[QueuePair] = []
        self.attrs: list[CmAttrs] = []
        self._max_rd_atomic = max_rd_atomic
        self.listener = Listener(HERE, self._admit, threading.RLock())
        self.address = f"{HERE}:{self.listener.port}"

    def _admit(self, request: bytes, attrs: CmAttrs) -> AdmittedBorrower:
        if handshake.proof_in(request) != handshake.proof_in(handshake.request(TICKET)):
            raise WrongBorrower("not admitted " + "\U0001f984" * 60)
        qp: Any = QueuePair()
        self.qps.append(qp)
        self.attrs.append(attrs)
        return AdmittedBorrower("host1", qp, min(attrs.max_rd_atomic, self._max_rd_atomic), WELCOME.pack())

    def close(self) -> None:
        """End it."""
        self.listener.close()


def connected(lender: Lender, qpn: int = 5) -> Connection:
    """Connect a borrower."""
    made = Connection(lender.address, SECONDS)
    assert made.device == "fake0"
    assert Welcome.unpack(made.request(qpn, handshake.request(TICKET))) == WELCOME
    attrs = made.attrs()
    assert attrs.dest_qpn in {qp.qpn for qp in lender.qps}
    assert attrs == CmAttrs(bytes(15) + b"\1", attrs.dest_qpn, 11, 12, 1, 3, 3, 8, 104)
    made.establish()
    return made


def readable(connection: Connection, seconds: float) -> bool:
    """Tell whether its end is heard of."""
    return bool(select.select([connection], [], [], seconds)[0])


def both_sides() -> None:
    """What they chose and told arrives, and the end of either at the other."""
    with closing(Lender()) as lender:
        with closing(connected(lender, 5)) as first, closing(connected(lender, 6)) as second:
            assert [(each.dest_qpn, each.max_rd_atomic) for each in lender.attrs] == [(5, 16), (6, 16)]
            one, two = lender.qps
            assert lender.listener.borrower(one.qpn) == "host1"
            first.close()
            assert wait_until(lambda: one.closed, LONG_SECONDS)
            raises(TransportGone, lambda: lender.listener.borrower(one.qpn))
            assert not two.closed
            assert not readable(second, 0)
            lender.listener.end(two.qpn)
            assert readable(second, LONG_SECONDS)
        third = connected(lender)
    assert all(qp.closed for qp in lender.qps)
    assert readable(third, LONG_SECONDS)
    third.close()


def refusals() -> None:
    """Arrive as what they were, as far as their text has room."""
    wrong = handshake.request(Ticket("verbs", "", "host1", b"wrong"))
    with closing(Lender()) as lender:
        for request, kind in ((wrong, WrongBorrower), (b"", TransportGone), (b"x" * 56, TransportGone)):
            with closing(Connection(lender.address, SECONDS)) as connection:
                error = raises(kind, lambda request=request, to=connection: to.request(5, request))  # type: ignore[misc]
                assert kind is TransportGone or "not admitted \U0001f984" in str(error)
        connected(lender).close()
        address = lender.address
    with closing(Connection(address, SECONDS)) as connection:
        assert "agent" in str(raises(TransportGone, lambda: connection.request(5, wrong)))
        raises(TransportGone, connection.attrs)
        raises(TransportGone, connection.establish)


def networks() -> None:
    """A way that is not there, or that nobody answers on."""
    for address in NO_DEVICE:
        assert "`rdma link`" in str(raises(NoDevice, lambda address=address: Connection(address, SECONDS)))  # type: ignore[misc]
    for address in (NO_WAY, "", HERE, f"{HERE}:x", f"{HERE}:65536", f"{HERE}:{2**40}", "host1:1", "\0:1"):
        assert "agent" in str(raises(TransportGone, lambda address=address: Connection(address, SECONDS)))  # type: ignore[misc]
    ticks, stop = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.01):
            ticks += 1

    other = threading.Thread(target=tick)
    other.start()
    begun = time.monotonic()
    assert "frozen" in str(raises(TransportTimeout, lambda: Connection(SILENT, 0.3)))
    assert 0.3 <= time.monotonic() - begun < LONG_SECONDS
    stop.set()
    other.join()
    assert ticks  # a wait holds no lock


def odd_arguments(make: ChannelType) -> None:
    """Are refused, and hold nothing."""
    raises(TypeError, lambda: make(1))  # type: ignore[call-arg]
    channel = make()
    raises(OSError, lambda: channel.listen("10.0.0.1", 1))
    raises(OSError, lambda: channel.listen("nonsense", 1))
    raises(OSError, lambda: channel.listen(HERE, 0))
    assert channel.event() is None
    listening = channel.listen(HERE, 1)
    raises(RuntimeError, channel.close)
    calling = channel.resolve(HERE, listening.port, 1)
    for call in (calling.attrs, calling.establish, lambda: calling.accept(1, 1, b""), lambda: calling.reject(b"")):
        raises(OSError, call)
    for use in (
        lambda: calling.connect(1, bytes(57)),
        lambda: calling.accept(1, 1, bytes(197)),
        lambda: calling.reject(bytes(149)),
    ):
        raises(ValueError, use)
    for _ in range(2):
        calling.close()
    assert channel.event() is None  # its events went with it
    for again in (calling.attrs, calling.establish, lambda: calling.resolve_route(1), lambda: calling.port):
        raises(ValueError, again)
    listening.close()
    for _ in range(2):
        channel.close()
    for late in (channel.event, channel.fileno, lambda: channel.listen(HERE, 1)):
        raises(ValueError, late)


def without_room(make: ChannelType) -> None:
    """One more than the device takes is refused, and keeps no channel open."""
    channel, made = make(), list[CmId]()

    def fill() -> None:
        while True:
            made.append(channel.resolve(HERE, 1, 1))

    raises(OSError, fill)
    assert made
    for each in made:
        each.close()
    channel.close()


def random_calls(make: ChannelType, dice: random.Random, rounds: int) -> int:
    """Any call at any time, by either side; CmIds are closed, or just forgotten. How many events came."""
    found = 0
    channel = make()
    listening = channel.listen(HERE, 1)
    known: list[CmId] = []
    for _ in range(rounds):
        if len(known) < 20 and dice.random() < 0.3:
            known.append(channel.resolve(dice.choice((HERE, "127.0.0.4")), listening.port, 1))
        with suppress(OSError, ValueError):
            call(dice, dice.choice(known or [listening]))
        if dice.random() < 0.2 and known:
            known.pop(dice.randrange(len(known)))
        found += take(channel, known)
    del known
    while channel.event() is not None:
        pass
    listening.close()
    channel.close()
    return found


def call(dice: random.Random, cm_id: CmId) -> None:
    """Do something with an cm_id."""
    data = dice.randbytes(dice.randrange(57))
    calls: list[Callable[[], object]] = [
        lambda: cm_id.resolve_route(1),
        lambda: cm_id.connect(7, data),
        lambda: cm_id.connect(7, data),
        lambda: cm_id.accept(8, 4, data),
        lambda: cm_id.reject(data),
        cm_id.establish,
        cm_id.attrs,
        cm_id.close,
    ]
    dice.choice(calls)()


def take(channel: Channel, known: list[CmId]) -> int:
    """Take an event: whether there was one."""
    event = channel.event()
    if event is None:
        return 0
    kind, cm_id, _, data = event
    assert len(data) in (0, 56, 148, 196)
    if kind == Event.REQUEST:
        known.append(cm_id)
    return 1


def raises(kind: type[Exception], call: Callable[[], object]) -> Exception:
    """Return the error of a call, of that kind; of PondErrors no subclass counts."""
    try:
        call()
    except kind as error:
        if type(error) is kind or not isinstance(error, PondError):
            return error
        raise
    raise AssertionError(f"no {kind.__name__}")


def main(path: str, seed: int) -> None:
    """Exercise it."""
    make = load(path)
    both_sides()
    refusals()
    networks()
    odd_arguments(make)
    without_room(make)
    found = random_calls(make, random.Random(seed), 20_000)
    print(f"{found} events of a fake librdmacm, seed {seed}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
