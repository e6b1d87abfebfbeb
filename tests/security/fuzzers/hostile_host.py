"""A host that was taken over, against a real leader over SQLite: whatever it sends, the leader and the others go on.

It has a right credential, so that everything about itself comes through: reports, samples, what it lends and borrows.
"""

import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.lenders import Lenders
from pondstack.db.connection.engine import Database
from pondstack.devices.emulated import create_device
from pondstack.domain import conform
from pondstack.domain.errors import PondError
from pondstack.domain.states import SliceState
from pondstack.rpc.wire import Report, Sample, UsedSplit
from pondstack.tests.controller import conftest
from tests.fixtures.rpc_call import call
from tests.fixtures.schema import migrate
from tests.security.fuzzers.mutations import changed
from tests.security.fuzzers.shape_values import drawn
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

HOSTILE, OTHER = "h1", "h2"
LENT: dict[str, Any] = {
    "incarnation": "4f1f6a52-4c0e-4b1e-8f53-0a4a4b2f9b01",
    "kind": "active",
    "buffer_mib": 64,
    "buffers": [[0, 4, "", 0]],
    "failed": {},
    "answers": True,
    "lendable_mib": 128,
    "operations": [
        {"operation_id": "lend-1", "verb": "lend", "state": "done", "mib": 256, "done_mib": 256, "reason": ""}
    ],
}


class HostileHost(Target):
    """One leader; host h2 has a guest on two slices, which stays as it is."""

    name = "hostile host"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        folder = Path(self.opened.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-")))
        device = create_device(folder / "pool0", conftest.SLICES, serial=conftest.SERIAL)
        database = Database.from_url(migrate(folder / "ledger.db"))
        self.opened.callback(database.dispose)
        self._rack = rack = conftest.make_rack(database, device.path, None)
        lenders = Lenders(rack.ledger, rack.agents, lambda: None)
        self._lending = LendingEndpoint(
            ledger=rack.ledger, reader=rack.reader, lenders=lenders, agents=rack.agents, gate=rack.endpoint.gate
        )
        self._kept = rack.online(OTHER, 2)
        self._own = rack.online(HOSTILE, 1)
        self._verbs = {
            "heartbeat": (rack.endpoint.heartbeat, self._report),
            "telemetry": (rack.endpoint.telemetry, self._samples),
            "acknowledge": (rack.endpoint.acknowledge, self._drawn(rack.endpoint.acknowledge)),
            "release": (rack.endpoint.release, self._drawn(rack.endpoint.release)),
            "assign": (rack.endpoint.assign, self._request),
            "record_splits": (rack.split_endpoint.record_splits, self._splits),
            "delegate": (self._lending.delegate, self._delegated),
            "reclaim": (self._lending.reclaim, self._drawn(self._lending.reclaim)),
            "borrow": (self._lending.borrow, self._borrowed),
            "release_buffers": (self._lending.release_buffers, self._drawn(self._lending.release_buffers)),
            "acknowledge_borrowed": (
                self._lending.acknowledge_borrowed,
                self._drawn(self._lending.acknowledge_borrowed),
            ),
        }

    def attack(self) -> None:
        """Send something, then look whether the leader can still say what is where."""
        verb = self.dice.choice(("heartbeat", *self._verbs))
        method, make = self._verbs[verb]
        sent = changed(self.dice, make())
        if not isinstance(sent, dict):
            return
        self._as_itself(sent)
        try:
            call(method, **sent)
        except PondError:
            self.note(REFUSED)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            self.note(REFUSED)
        else:
            self.note(ACCEPTED)
        if not self.steps % 4:
            self._look(f"{verb} {sent!r:.400}")

    def _as_itself(self, sent: dict[str, Any]) -> None:
        """It cannot speak for another host: the signature says who it is (pondstack.rpc.identity.callers)."""
        if isinstance(sent.get("report"), dict) and "host" in sent["report"]:
            sent["report"]["host"] = HOSTILE
        if "host" in sent:
            sent["host"] = HOSTILE

    def _look(self, after: str) -> None:
        rack = self._rack
        rack.beat(OTHER)
        rack.reconcile()
        rack.reader.rack()
        for host in (HOSTILE, OTHER):
            rack.reader.host(host)
        rack.reader.lenders()
        call(rack.endpoint.snapshot)
        mine = [item for item in rack.reader.slices(conftest.POOL) if item.host == OTHER]
        if [item.state for item in mine] != [SliceState.ONLINE] * 2 or {item.allocation_uuid for item in mine} != {
            self._kept.allocation_uuid
        }:
            self.fault(f"the guest of {OTHER} has {mine} after {after}")

    # Right at first

    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = self._rack.agents[HOSTILE].report().to_wire()
        if self.dice.random() < 0.6:
            report |= {"lending": LENT, "borrowed": drawn(conform.fields_of(Report), self.dice).get("borrowed")}
        report["sequence"] += self.dice.choice((0, 1, 10))
        return {"report": _plain(report)}

    def _samples(self) -> dict[str, Any]:
        return {"host": HOSTILE, "samples": [drawn(conform.fields_of(Sample), self.dice) for _ in range(2)]}

    def _splits(self) -> dict[str, Any]:
        features = {
            "instance_uuid": self._uuid(),
            "memory_mib": 4096,
            "vcpus": 2,
            "flavor_name": "m1",
            "project_id": "p",
        }
        return {"splits": [{**drawn(conform.fields_of(UsedSplit), self.dice), "features": features}]}

    def _request(self) -> dict[str, Any]:
        return {
            "operation_id": self._uuid(),
            "consumer_uuid": self._uuid(),
            "host": HOSTILE,
            "pool_uuid": conftest.POOL,
            "pool_mib": 1024,
            "guest_mib": 4096,
            "shape": [1],
        }

    def _delegated(self) -> dict[str, Any]:
        buffers = [{"index": index, "offset_mib": index * 64} for index in range(3)]
        told = {"host": HOSTILE, "sequence": self._rack.agents[HOSTILE].sequence + 1, "buffers": buffers}
        return {**told, "incarnation": LENT["incarnation"], "kind": "active", "buffer_mib": 64}

    def _borrowed(self) -> dict[str, Any]:
        return {
            "operation_id": self._uuid(),
            "consumer_uuid": self._uuid(),
            "host": HOSTILE,
            "remote_mib": 64,
            "guaranteed": False,
        }

    def _drawn(self, method: Any) -> Any:
        """Return what draws arguments of a verb: of its own allocation, or of the other host's."""

        def make() -> dict[str, Any]:
            found = {key: drawn(shape, self.dice) for key, shape in conform.arguments_of(method).items()}
            if "allocation_uuid" in found:
                found["allocation_uuid"] = self.dice.choice((self._own, self._kept)).allocation_uuid
            return found | {"operation_id": self._uuid()}

        return make

    def _uuid(self) -> str:
        return str(UUID(int=self.dice.getrandbits(128)))


def _plain(value: Any) -> Any:
    """Return a value as JSON brings it: lists, no tuples."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
