"""The whole path over shared memory: lend, export, prepare, read and write, give back, revoke, withdraw."""

import json
import os

import pytest

from pondstack.domain.errors import PondError
from pondstack.domain.units import MIB


def test_memory_goes_there_and_back(rack) -> None:
    lender, borrower = rack["host1"], rack["host2"]
    lent = lender.lend(3, "zombie")
    assert (lent["kind"], [item["index"] for item in lent["buffers"]]) == ("zombie", [0, 1, 2])
    [offer] = rack.controller.delegated
    assert offer["incarnation"] == lent["incarnation"]
    assert offer["buffers"] == [{"index": index, "offset_mib": index} for index in range(3)]

    answer = json.loads(json.dumps(lender.calls.export(epoch=1, indexes=[0, 2], borrower="host2")))
    assert borrower.calls.prepare(epoch=1, lender="host1", allocation_uuid="allocation1", **answer) == [0, 2]
    link, data = borrower.link("host1", lent["incarnation"]), os.urandom(MIB)
    read = bytearray(MIB)
    link.write(2, 0, data)
    link.read_into(2, 0, read)
    assert read == data

    gone = {"allocation_uuid": "allocation1", "lender": "host1", "incarnation": lent["incarnation"], "indexes": [0, 2]}
    assert borrower.calls.give_back(epoch=1, **gone) == []
    borrower.later.run()
    assert borrower.owner.told == [("arrived", "allocation1", [0, 2]), ("leave", "allocation1", [0, 2])]
    assert list(rack.controller.released_buffers.values()) == [{"host": "host2", **gone}]
    assert borrower.calls.give_back(epoch=1, **gone) == [0, 2]
    with pytest.raises(PondError):
        link.read_into(2, 0, read)

    assert lender.calls.revoke(epoch=1, indexes=[0, 2]) == [0, 2]
    assert lender.calls.withdraw(epoch=1, indexes=[0, 1, 2]) == [0, 1, 2]
    assert lender.lending.get_lending()["buffers"] == []
    assert lender.lending.get_lending()["incarnation"] == ""
