"""A host of the rack lends, is suspended, serves while it sleeps, and is woken: by plans, real agents and Nova.

Sleep is emulated there (driver frozen): agent and nova-compute are stopped, the lender's process serves.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from keystoneauth1.adapter import Adapter

from pondstack.domain.host_sleep import DISABLED_REASON
from pondstack.rpc.agent_api import AgentAPI
from pondstack_rack.cloud_client import read_openrc
from pondstack_rack.demo.consolidation import FULL, OVERLOADED
from pondstack_rack.demo.host_load import HostLoad, host_load
from pondstack_rack.demo.operator import Operator
from pondstack_rack.layout import program
from pondstack_rack.rack import Rack
from pondstack_rack.services import keystone
from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.exported.client import Nbd, connect
from tests.rack.lent_claims import claimed
from tests.rack.outages import Days

pytestmark = [pytest.mark.rack, pytest.mark.timeout(900)]

SLEEPER, BORROWER, NEIGHBOUR = "fake1", "fake2", "fake3"
MIB = 256
SWAP_MIB = 128
SECONDS = 180.0
PAGE = 4096
PAGES = range(0, SWAP_MIB * 256, 61)
WAY_DOWN = ("disabling", "lending", "suspending")
WAY_UP = ("waking", "reclaiming", "enabling")


def content(page: int) -> bytes:
    return f"page {page} ".encode().ljust(32, b".") * 128


class Sleeper:
    """One host as an operator sees it."""

    def __init__(self, rack: Rack) -> None:
        session = keystone.session(rack.layout)
        self.rack = rack
        self._api = Adapter(session, "memory", region_name="RegionOne", default_microversion="1.19", raise_exc=False)
        self._nova = Adapter(session, "compute", region_name="RegionOne", default_microversion="2.53")
        self._environment = os.environ | read_openrc(rack.layout.root / "openrc")

    def openstack(self, *words: str, code: int = 0) -> str:
        """Run a command; returns what it tells."""
        command = [program("openstack"), "memory", "host", *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def shown(self) -> dict[str, Any]:
        """The host, as the API shows it."""
        found: dict[str, Any] = self._api.get(f"/hosts/{SLEEPER}").json()
        return found

    @property
    def state(self) -> str:
        """The state of its newest sleep."""
        return str((self.shown["sleep"] or {"state": ""})["state"])

    def post(self, verb: str, **body: Any) -> None:
        """Order something."""
        answer = self._api.post(f"/hosts/{SLEEPER}/{verb}", json=body)
        assert answer.status_code == 202, answer.text

    def findings(self) -> list[str]:
        """Return what an audit warns of, but for the swap disk here, whose instance Nova does not have."""
        told = self._api.post("/audits", json={"repair": False}).json()
        codes = [item["code"] for item in told["findings"] if item["severity"] != "info"]
        return [code for code in codes if code != "swap_disk_unclaimed"]

    def service(self) -> tuple[str, str | None]:
        """Return status and reason of the compute service."""
        (found,) = self._nova.get(f"/os-services?host={SLEEPER}&binary=nova-compute").json()["services"]
        return found["status"], found["disabled_reason"]

    def stands_still(self) -> bool:
        """Whether agent and nova-compute are stopped, each with its children."""
        found = [self.rack.service(f"{kind}-{SLEEPER}").process for kind in ("pondstack-agent", "nova-compute")]
        own = [process for parent in found for process in (parent, *parent.children(recursive=True))]
        return all(process.status() == psutil.STATUS_STOPPED for process in own)


@pytest.fixture
def sleeper(rack: Rack) -> Iterator[Sleeper]:
    """The host, which is awake and lends nothing at the end."""
    made = Sleeper(rack)
    yield made
    if made.state not in ("", "awake", "failed", "aborted"):
        made.openstack("wake", SLEEPER, "--wait")
    if made.shown["lending"]["lent_mib"]:
        made.openstack("reclaim", SLEEPER, "--mib", str(made.shown["lending"]["lent_mib"]), "--wait")


def test_plans_have_a_host_sleep_which_serves_and_wake_it(rack: Rack, sleeper: Sleeper) -> None:
    """Loads are played. A plan empties a host of nothing, and has it sleep; one that relieves another host wakes it."""
    operator = Operator(rack, print)
    with Days(rack) as days, host_load(rack.layout) as load:
        server = days.boot(days.flavor(only=(SLEEPER, NEIGHBOUR)), NEIGHBOUR)
        transport = days.transport()
        agents, consumer = AgentAPI(transport), str(uuid4())
        sleeper.openstack("delegate", SLEEPER, "--mib", str(MIB), "--wait")
        view = agents.attach_swap(BORROWER, consumer_uuid=consumer, mib=SWAP_MIB)
        assert days.until_built(server) == "ACTIVE"
        try:
            with connect(Path(view["socket"]), "") as disk:
                for page in PAGES:
                    disk.write(page * PAGE, content(page))
                _play(rack, load, {SLEEPER: 0.0})
                plan = operator.plan("--most-emptied", "1", wanted=lambda plan: _does(plan, "suspend"))
                done, _ = operator.apply(plan["uuid"], SLEEPER)
                assert done["state"] == "done", done
                assert operator.at_lending == ("disabled", DISABLED_REASON), "Nova knew before it lent"
                _serves_asleep(sleeper, agents, consumer, disk)
                _play(rack, load, {NEIGHBOUR: OVERLOADED}, FULL)
                plan = operator.plan("--most-emptied", "0", wanted=lambda plan: _does(plan, "wake"))
                done, _ = operator.apply(plan["uuid"], SLEEPER)
                assert done["state"] == "done", done
                assert days.server(server)["OS-EXT-SRV-ATTR:hypervisor_hostname"] == SLEEPER, "it takes servers again"
                assert _wrong(disk) == []
                assert (sleeper.shown["up"], sleeper.shown["lending"]["lent_mib"]) == (True, 0)
                assert sleeper.service()[0] == "enabled"
        finally:
            assert wait_until(lambda: agents.release_swap(BORROWER, consumer_uuid=consumer) is not None, SECONDS)
            transport.cleanup()


def _play(rack: Rack, load: HostLoad, loads: dict[str, float], others: float = 40.0) -> None:
    load.play({name: [(0.0, loads.get(name, others))] for name in rack.layout.all_hosts})


def _does(plan: Any, kind: str) -> bool:
    return any(item["kind"] == kind and item["host"] == SLEEPER for item in plan["actions"])


def _serves_asleep(sleeper: Sleeper, agents: AgentAPI, consumer: str, disk: Nbd) -> None:
    assert sleeper.state == "asleep"
    assert sleeper.stands_still()
    assert sleeper.service() == ("disabled", DISABLED_REASON)
    # Its agent has been silent for longer than others may be.
    assert wait_until(lambda: not sleeper.shown["up"], SECONDS)
    assert sleeper.findings() == []
    found = agents.get_swap(BORROWER, consumer_uuid=consumer)
    assert found
    assert found["disk"]["leases"] == {"active": SWAP_MIB // 64}, "the sleeper's memory is used"
    assert _wrong(disk) == []
    for page in PAGES:
        disk.write(page * PAGE, content(page + 1))
    assert [page for page in PAGES if disk.read(page * PAGE, PAGE) != content(page + 1)] == []
    for page in PAGES:
        disk.write(page * PAGE, content(page))


def _wrong(disk: Nbd) -> list[int]:
    return [page for page in PAGES if disk.read(page * PAGE, PAGE) != content(page)]


def test_a_host_with_a_claim_is_not_suspended(rack: Rack, sleeper: Sleeper) -> None:
    consumer = str(uuid4())
    with Days(rack) as days:
        sleeper.openstack("delegate", BORROWER, "--mib", "64", "--wait")
        try:
            with claimed(days.cloud, consumer, SLEEPER, 64):
                told = sleeper.openstack("suspend", SLEEPER, "--wait", code=1)
                assert consumer in told
                assert (sleeper.service()[0], sleeper.shown["lending"]["lent_mib"]) == ("enabled", 0)
        finally:
            sleeper.openstack("reclaim", BORROWER, "--mib", "64", "--wait")


def test_leaders_die_at_every_step(rack: Rack, sleeper: Sleeper) -> None:
    """The leader is killed once in each state that it is seen in, and the next one goes on."""
    with Days(rack) as days:
        seen = _kill_in(days, sleeper, WAY_DOWN, "suspend", "asleep", mib=MIB)
        assert sleeper.stands_still()
        seen |= _kill_in(days, sleeper, WAY_UP, "wake", "awake")
        print("leaders were killed while the host was", ", ".join(sorted(seen)))
        assert {"lending", "reclaiming"} <= seen
        assert sleeper.service()[0] == "enabled"
        days.assert_agreement()


def _kill_in(days: Days, sleeper: Sleeper, states: tuple[str, ...], verb: str, end: str, **body: Any) -> set[str]:
    struck: set[str] = set()
    sleeper.post(verb, operation_id=str(uuid4()), **body)

    def done() -> bool:
        state = sleeper.state
        if state in states and state not in struck:
            struck.add(state)
            days.kill_controllers()
            days.start_controllers()
        assert state not in ("failed", "aborted", "lost"), sleeper.shown["sleep"]
        return state == end

    assert wait_until(done, SECONDS), sleeper.shown["sleep"]
    return struck
