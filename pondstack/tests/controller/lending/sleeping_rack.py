"""A lender that sleeps, and its borrowers, over a ledger in memory."""

from uuid import uuid4

import oslo_messaging

from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.controller.lending.sealing import KEY_BYTES, EscrowSealer
from pondstack.domain.errors import Conflict, HostUnusable, InUse, Unavailable
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from tests.fixtures.ledgers import report
from tests.fixtures.memory.lease import take_over
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.store import MemoryStore

SIZE, LIFE = 64, str(uuid4())
SEALER = EscrowSealer({"now": bytes(range(KEY_BYTES))})
BORROWERS = ("h2", "h3")


class Agents:
    """One lender, h1, and its borrowers. `keys`: live ones by buffer and borrower; `links`: who is connected to it."""

    def __init__(self):
        self.keys, self.links, self.ended = {}, set(), {}
        self.asleep, self.down, self.former, self.lost = False, set(), set(), []
        self.connects = []

    def escrow(self, host, *, indexes, borrower, incarnation, generations, **_said):
        self._asked(host)
        if host in self.former:
            raise HostUnusable("upgrade it")
        for index in indexes:
            if self.ended.get(index, 0) >= generations[index]:
                raise Conflict("late")
            self.keys[index, borrower] = generations[index]
        if "escrow" in self.lost:
            self.lost.remove("escrow")
            raise oslo_messaging.MessagingTimeout(host)
        keys = {str(index): {"number": index, "token": f"{borrower} {index}"} for index in indexes}
        return {"incarnation": incarnation, "ticket": {"borrower": borrower}, "keys": keys}

    def connect(self, host, *, ticket, **_said):
        self._asked(host)
        if host in self.former:
            raise HostUnusable("upgrade it")
        if self.asleep:
            raise Unavailable("the lender sleeps")
        assert ticket == {"borrower": host}
        self.connects.append(host)
        self.links.add(host)
        return True

    def export(self, host, *, indexes, borrower, incarnation, generations, **_said):
        self._asked(host)
        for index in indexes:
            others = [each for each in self.keys if each[0] == index and each[1] != borrower]
            if (index, borrower) not in self.keys and others:
                raise InUse("another borrower's key lives")
            self.keys = {each: value for each, value in self.keys.items() if each not in others}
            self.keys[index, borrower] = generations[index]
        return {"incarnation": incarnation, "ticket": {}, "keys": {str(index): "new" for index in indexes}}

    def revoke(self, host, *, indexes, generations, **_said):
        self._asked(host)
        for index in indexes:
            self.ended[index] = max(self.ended.get(index, 0), generations[index])
        self.keys = {each: at for each, at in self.keys.items() if each[0] not in indexes}
        return list(indexes)

    def give_back(self, host, *, indexes, **_said):
        self._asked(host)
        return list(indexes)

    def _asked(self, host):
        if host in self.down or (host == "h1" and self.asleep):
            raise oslo_messaging.MessagingTimeout(host)


class SleepingRack:
    """Host h1 lends four buffers; h2 and h3 borrow."""

    def __init__(self):
        self.store = MemoryStore()
        self.agents, self.sequence = Agents(), 1
        self.lead()
        for host in ("h1", *BORROWERS):
            self.say(host)
        self.lend(LenderKind.ACTIVE)

    def lead(self, sealer=SEALER):
        self.ledger = MemoryLedger(self.store, take_over(self.store))
        self.lenders = Lenders(self.ledger, self.agents, lambda: None, sealer)
        self.settler = BufferSettler(self.ledger, self.agents, sealer=sealer)

    def say(self, host):
        self.sequence += 1
        links = [["h1", LIFE]] if host in self.agents.links else []
        borrowed = {"lenders": []} | ({} if host in self.agents.former else {"links": links})
        self.ledger.hosts.heartbeat(report(host, self.sequence, pools=[], borrowed=borrowed))

    def lend(self, kind, admitted=True, count=4):
        self.sequence += 1
        offsets = {index: index * SIZE for index in range(count)}
        self.ledger.buffers.delegate(Lender("h1", LIFE, kind, SIZE), self.sequence, offsets, admitted=admitted)

    def sleep(self):
        """Have all keys made, then sleep."""
        self.lend(LenderKind.ZOMBIE)
        for _ in range(2):
            self.settler.run()
            for host in BORROWERS:
                self.say(host)
        self.agents.asleep = True

    def wake(self):
        self.agents.asleep = False
        self.lend(LenderKind.ACTIVE)

    def borrow(self, host, count, operation=None):
        return self.lenders.borrow(operation or str(uuid4()), BorrowRequest("vm", host, count * SIZE, True), SIZE)

    def give_back(self, given, host):
        self.lenders.give_back(str(uuid4()), given["allocation_uuid"], host)

    def states(self):
        return [str(item.state) for item in self.ledger.buffers.find("h1")]

    def told(self):
        return [item.promised_to for item in self.ledger.buffers.find("h1")]
