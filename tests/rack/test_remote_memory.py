"""A consumer borrows through its host's agent; its pages stay right while agents die and a lender takes all of it back.

By the API, the CLI, real agents and their data plane, over shared memory.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from keystoneauth1.adapter import Adapter

from pondstack.domain.errors import Conflict, Unclaimed
from pondstack.rpc.agent_api import AgentAPI
from pondstack_rack.cloud_client import read_openrc
from pondstack_rack.layout import program
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone, pondstack_services
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.exported.client import Nbd, connect
from tests.rack.lent_claims import claimed
from tests.rack.outages import Days

pytestmark = [pytest.mark.rack, pytest.mark.timeout(600)]

BORROWER = "fake2"
MIB = 128
SECONDS = 90.0
PAGES = range(0, MIB * 256, 61)
PAGE = 4096
DEFAULT = ""
"""The export without a name, which QEMU asks for."""


def content(page: int) -> bytes:
    return f"page {page} ".encode().ljust(32, b".") * 128


class Memory:
    """Two hosts that lend, as an operator sees them."""

    def __init__(self, rack: Rack) -> None:
        session = keystone.session(rack.layout)
        self._api = Adapter(session, "memory", region_name="RegionOne", default_microversion="1.5", raise_exc=False)
        self._environment = os.environ | read_openrc(rack.layout.root / "openrc")
        others = [host for host in (*rack.layout.fake_hosts, *rack.layout.libvirt_hosts) if host != BORROWER]
        self.lenders = others[:2]

    def openstack(self, *words: str) -> str:
        """Run a command as an operator does."""
        command = [program("openstack"), "memory", *words]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def states(self, lender: str) -> list[str]:
        """Return the states of a lender's buffers."""
        answer = self._api.get(f"/lenders/{lender}/buffers")
        return [] if answer.status_code == 404 else sorted(item["state"] for item in answer.json()["buffers"])

    def share(self, consumer: str) -> dict[str, Any]:
        """Return what an instance is to have, and is lent; {} of nothing."""
        answer = self._api.get(f"/shares/{consumer}", microversion="1.18")
        return {} if answer.status_code == 404 else dict(answer.json())


@pytest.fixture
def memory(rack: Rack) -> Iterator[Memory]:
    """Both lend, and have all of it back at the end."""
    made = Memory(rack)
    for lender in made.lenders:
        made.openstack("host", "delegate", lender, "--mib", str(MIB), "--wait")
    yield made
    for lender in made.lenders:
        if made.states(lender):
            made.openstack("host", "reclaim", lender, "--mib", str(MIB), "--wait")
    assert wait_until(lambda: pondstack_services.lender_processes(rack.layout) == [], SECONDS)


def test_pages_outlive_agents_and_a_lender(rack: Rack, memory: Memory) -> None:
    with Days(rack) as days:
        transport = days.transport()
        agents, consumer = AgentAPI(transport), str(uuid4())
        try:
            with pytest.raises(Unclaimed):
                agents.alloc_ext(BORROWER, operation_id=str(uuid4()), consumer_uuid=consumer, mib=MIB)
            with claimed(days.cloud, consumer, BORROWER, MIB):
                _borrow_for_an_instance(memory, agents, consumer)
            _borrow(rack, memory, agents, consumer)
            assert wait_until(lambda: agents.get_swap(BORROWER, consumer_uuid=consumer) is None, SECONDS)
            assert wait_until(lambda: set(memory.states(memory.lenders[1])) == {"free"}, SECONDS)
        finally:
            transport.cleanup()


def _borrow_for_an_instance(memory: Memory, agents: AgentAPI, consumer: str) -> None:
    """Of which no guest runs: its host's data plane has nothing to serve, and the buffers are there."""
    room = agents.get_mirror_room(BORROWER)
    assert room["total_mib"] > room["used_mib"] == 0
    view = agents.alloc_ext(BORROWER, operation_id=str(uuid4()), consumer_uuid=consumer, mib=MIB)
    assert (view["state"], view["borrowed_mib"], view["extension"]) == ("active", MIB, None)
    # What it is to have, its host says with its next heartbeat; what is lent, the ledger knows at once.
    assert memory.share(consumer)["remote_lent_mib"] == MIB
    assert wait_until(lambda: memory.share(consumer)["remote_mib"] == MIB, SECONDS), memory.share(consumer)
    with pytest.raises(Conflict, match="no process"):
        agents.extend(BORROWER, consumer_uuid=consumer, memory_mib=2 * MIB, local_mib=MIB)
    assert agents.release_remote(BORROWER, consumer_uuid=consumer)
    for lender in memory.lenders:
        assert wait_until(lambda lender=lender: set(memory.states(lender)) == {"free"}, SECONDS)
    assert wait_until(lambda: memory.share(consumer) == {}, SECONDS), memory.share(consumer)


def _borrow(rack: Rack, memory: Memory, agents: AgentAPI, consumer: str) -> None:
    assert wait_until(lambda: agents.get_remote(BORROWER, consumer_uuid=consumer) is None, SECONDS)
    view = agents.attach_swap(BORROWER, consumer_uuid=consumer, mib=MIB)
    try:
        _use(rack, memory, agents, view)
    finally:
        assert wait_until(lambda: not _disk(agents, view)["connected"], SECONDS)
        assert agents.release_swap(BORROWER, consumer_uuid=consumer)


def _use(rack: Rack, memory: Memory, agents: AgentAPI, view: dict[str, Any]) -> None:
    first, second = memory.lenders
    assert (view["state"], view["borrowed_mib"]) == ("active", MIB)
    assert memory.states(first) == memory.states(second) == ["free", "online"]
    with connect(Path(view["socket"]), DEFAULT) as reader:
        for page in PAGES:
            reader.write(page * PAGE, content(page))
        _check(reader)
        # Its agent is killed, and starts anew: the data plane is another process.
        agent = rack.service(f"pondstack-agent-{BORROWER}")
        agent.kill()
        _check(reader)
        agent.start()
        shown = memory.openstack("host", "reclaim", first, "--mib", str(MIB), "--wait")
        print(shown)
        _check(reader)
        assert memory.states(first) == []
        # What it lost is asked for again: the other lender has room for it.
        assert wait_until(lambda: _borrowed(agents, view) == MIB, SECONDS)
        assert wait_until(lambda: _disk(agents, view)["leases"] == {"active": 2}, SECONDS), _disk(agents, view)
        # The ledger hears of it last.
        assert wait_until(lambda: memory.states(second) == ["online", "online"], SECONDS), memory.states(second)
        _check(reader)


def _check(reader: Nbd) -> None:
    assert [page for page in PAGES if reader.read(page * PAGE, PAGE) != content(page)] == []


def _borrowed(agents: AgentAPI, view: dict[str, Any]) -> int:
    found = agents.get_swap(BORROWER, consumer_uuid=view["consumer_uuid"])
    assert found
    return int(found["borrowed_mib"])


def _disk(agents: AgentAPI, view: dict[str, Any]) -> dict[str, Any]:
    """Return what the data plane tells of the disk."""
    found = agents.get_swap(BORROWER, consumer_uuid=view["consumer_uuid"])
    assert found
    return dict(found["disk"])
