"""Two emulated hosts hand one pool back and forth through the controller: no owner sees the former one's bytes.

Controller, broker and ledger run on this machine, an agent in each host; the test is Nova and the guests.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import oslo_messaging
import pytest

from pondstack.domain.errors import InUse, PondError, PoolShortage
from pondstack.rpc.agent_api import AgentAPI
from tests.fixtures.seeds import by_night

from .channel import RemoteDied
from .conftest import Hardware
from .controlled_rack import STATE, TABLE, ControlledRack, timed
from .figures import Figures
from .machine import Machine

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1200)]

SLICES, SLICE_MIB = 2, 128
"""All of them are in each allocation, so that each round hands on the same ones."""

GUEST_MIB = 192
PAGES = GUEST_MIB * 256
HOSTS = ("host1", "host2")
ROUNDS = by_night(4, 2)


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory, figures: Figures) -> Iterator[ControlledRack]:
    """The controller's side, and two hosts with their agents."""
    folder = tmp_path_factory.mktemp("rack")
    rack = ControlledRack(folder, SLICES, SLICE_MIB)
    device = rack.device.path
    machines = [
        Machine(name, (device / "memory",), shares={TABLE: device}, memory_mib=1024, network=True) for name in HOSTS
    ]
    with rack.running(), hardware.hosts(*machines) as hosts:
        _, seconds = timed(rack.join, hosts)
        figures.add("both agents from start to usable", seconds, "s")
        yield rack


def test_no_owner_sees_the_former_ones_bytes(rack: ControlledRack, figures: Figures) -> None:
    former, spans = "", []
    for number in range(ROUNDS):
        name, text = HOSTS[number % 2], f"secret of owner {number}"
        held, attaching = timed(rack.attach, name)
        assert set(rack.states()) == {"online"}
        assert not former or rack.pages_with(former) == 0
        with rack.guest(name, held, GUEST_MIB, text):
            with pytest.raises(InUse):
                rack.detach(name, held)
            other = HOSTS[(number + 1) % 2]
            with pytest.raises(PoolShortage):
                rack.attach(other)
            assert rack.pages_with(text) == PAGES
        _, detaching = timed(rack.detach, name, held)
        _, freeing = timed(rack.wait_free)
        assert rack.pages_with(text) == 0
        spans.append((attaching, detaching, freeing))
        former = text
    assert memory_is_zero(rack)
    for index, what in enumerate(("attach, answered", "detach, answered", "from then to sanitised and free")):
        figures.add(f"{SLICES} slices of {SLICE_MIB} MiB: {what}", sum(span[index] for span in spans) / ROUNDS, "s")


def test_an_agent_killed_in_a_detach_gives_the_slices_back(rack: ControlledRack, figures: Figures) -> None:
    name, text = HOSTS[0], "left behind by a killed agent"
    held = rack.attach(name)
    with rack.guest(name, held, GUEST_MIB, text):
        assert rack.pages_with(text) == PAGES
    state = f"{STATE}/cxl-states/{held.allocation_uuid}.json"
    killer = rack.kill_agent_at(name, state, "offlining")
    operation = str(uuid4())
    impatient = AgentAPI(rack.bus, timeout_seconds=10.0, monitor_seconds=2)
    try:
        impatient.detach(name, operation_id=operation, consumer_uuid=held.consumer_uuid)
    except (oslo_messaging.MessagingTimeout, PondError) as error:
        print(f"the detach was not answered: {error}")
    killer.wait()
    rack.agents[name].wait()
    assert b"offlining" in rack.hosts[name].get(state)
    assert set(rack.states()) == {"online"}

    def back() -> None:
        rack.start_agent(name)
        rack.wait_free()

    _, seconds = timed(back)
    figures.add("agent killed in a detach: from its start to free", seconds, "s")
    assert rack.agent.detach(name, operation_id=operation, consumer_uuid=held.consumer_uuid) in (True, False)
    assert memory_is_zero(rack)
    taken = rack.attach(HOSTS[1])
    assert rack.pages_with(text) == 0
    rack.detach(HOSTS[1], taken)
    rack.wait_free()


def test_a_host_without_power_keeps_its_slices_until_it_is_fenced(rack: ControlledRack, figures: Figures) -> None:
    name, other, text = HOSTS[1], HOSTS[0], "left behind by a host without power"
    held = rack.attach(name)
    with contextlib.suppress(RemoteDied), rack.guest(name, held, GUEST_MIB, text):
        rack.hosts[name].power_off()
    rack.eventually(lambda: not rack.reader.host(name).up, lambda: "its agent is silent and counts as up")
    findings = rack.controller.audit(repair=True)["findings"]
    assert "agent_down" in {finding["code"] for finding in findings}
    assert set(rack.states()) == {"online"}
    with pytest.raises(PoolShortage):
        rack.attach(other)
    assert rack.pages_with(text) == PAGES

    def fence() -> None:
        rack.controller.fence_host(name=name, reason="it has no power", force=False, generation=None)
        rack.wait_free()

    _, seconds = timed(fence)
    figures.add("host without power: from the fence to free", seconds, "s")
    assert memory_is_zero(rack)
    taken = rack.attach(other)
    assert rack.pages_with(text) == 0
    rack.detach(other, taken)
    rack.wait_free()


def memory_is_zero(rack: ControlledRack) -> bool:
    """Look at every byte of the device, from outside."""
    data = Path(rack.device.path, "memory").read_bytes()
    return data.count(0) == len(data) == SLICES * SLICE_MIB * 2**20
