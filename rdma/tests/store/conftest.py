"""Racks whose lenders have room for pages, over the transports that a machine without RDMA has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rdma.base import Transport
from rdma.tests.harness import shm, tcp
from rdma.tests.rack import Rack, rack


@pytest.fixture(params=[shm, tcp], ids=["shm", "tcp"])
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Transport:
    made: Transport = request.param(tmp_path)
    return made


@pytest.fixture
def one(transport: Transport) -> Iterator[Rack]:
    """Three lenders, one page written on each slot of a third of them."""
    made = rack(transport)
    for name in ("lender1", "lender2", "lender3"):
        made.add(name)
    yield made
    made.close()


@pytest.fixture
def bare(transport: Transport) -> Iterator[Rack]:
    """The same without a mirror."""
    made = rack(transport, mirror=False)
    for name in ("lender1", "lender2", "lender3"):
        made.add(name)
    yield made
    made.close()
