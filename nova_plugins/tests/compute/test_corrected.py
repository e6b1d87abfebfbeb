"""A guest whose split was corrected: all of its memory is claimed as local, and it never gets pool memory again."""

from types import SimpleNamespace
from typing import Any

import pytest
from keystoneauth1 import exceptions as keystone
from nova import exception
from nova.compute import task_states

from nova_plugins.tests.compute.virt_rig import POND, VM, Driver, Rack, claim, guest, h1, h2, rack, spawn
from pondstack.domain import errors
from pondstack_nova.compute.agent_client import PoolMemoryUnavailable
from pondstack_nova.virt_libvirt import PondLibvirtDriver

__all__ = ["h1", "h2", "rack"]

OPEN: dict[str, Any] = claim("h1", local=4096)
"""While the mitigation is open Placement holds the pool share, too."""

DONE: dict[str, Any] = claim("h1", local=4096, pool=0)


@pytest.fixture(params=[OPEN, DONE], ids=["open", "done"])
def claimed(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def _correct(rack: Rack, claimed: dict[str, Any]) -> None:
    """Have Placement hold all as local; once that is done, the agent has given the slices back."""
    rack.claims[VM] = claimed
    if claimed is DONE:
        rack.agents.lose("h1")


def test_a_reboot_leaves_it_without_pool_memory(rack: Rack, h1: Driver, claimed: dict[str, Any]) -> None:
    """What it holds yet goes with its process, and not before."""
    spawn(h1, guest())
    _correct(rack, claimed)
    h1.reboot(guest())
    held = 1024 if claimed is OPEN else 0
    assert h1.seen[1:] == [("destroy", held), ("made anew", 0)]
    assert len(rack.agents.attaches) == 1
    h1.resume_state_on_host_boot("context", guest())
    assert h1.seen[-1] == ("made anew", 0)
    assert len(rack.agents.attaches) == 1
    assert rack.agents.held == {}


def test_slices_that_do_not_go_keep_nobody_from_a_start(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    _correct(rack, OPEN)
    rack.agents.faults["detach"] = [errors.Unavailable("not now")]
    h1.reboot(guest())
    assert h1._pond_attachment(guest()) is None, "it is made of local memory"
    assert rack.agents.hosts_of(VM) == {"h1": 1024}, "the controller gets them back"


def test_a_rebuild_leaves_it_without_pool_memory(rack: Rack, h1: Driver, claimed: dict[str, Any]) -> None:
    spawn(h1, guest())
    _correct(rack, claimed)
    rebuilding = guest(task_state=task_states.REBUILDING)
    with pytest.raises(NotImplementedError):
        h1.rebuild("context", rebuilding)
    h1.destroy("context", rebuilding)
    spawn(h1, rebuilding, claimed)
    assert len(rack.agents.attaches) == 1
    assert h1._pond_attachment(guest()) is None


def test_a_rescue_makes_it_of_local_memory(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    _correct(rack, OPEN)
    assert h1._pond_attachment(guest()) is None
    assert h1._pond_holds(guest()), "and no port may pin what it has yet"


@pytest.mark.parametrize("specs", [{}, POND])
def test_whether_it_is_all_local(rack: Rack, h1: Driver, specs: dict[str, str]) -> None:
    spawn(h1, guest(specs))
    assert not h1._pond_is_local(guest(specs))
    rack.silent = keystone.ConnectFailure("no Placement")
    assert not h1._pond_is_local(guest(specs)), "what is there is its own"
    rack.silent = None
    rack.claims[VM] = OPEN
    assert h1._pond_is_local(guest(specs))
    rack.agents.lose("h1")
    rack.silent = keystone.ConnectFailure("no Placement")
    with pytest.raises(PoolMemoryUnavailable):
        h1._pond_is_local(guest(specs))


NODES = "<numatune><memnode cellid='1' mode='preferred' nodeset='1'/></numatune>"


@pytest.mark.parametrize(
    ("access", "held", "moves"),
    [("", None, True), ("memAccess='shared'", None, False), ("", 2048, False), ("", 1024, True)],
)
def test_a_running_guest_whose_pages_have_moved_may_move(access: str, held: int | None, moves: bool) -> None:
    driver = object.__new__(PondLibvirtDriver)
    xml = f"<domain>{NODES}<cpu><numa><cell id='1' {access} memory='1048576'/></numa></cpu></domain>"
    driver._host = SimpleNamespace(get_guest=lambda _: SimpleNamespace(get_xml_desc=lambda: xml))
    driver._pond_node = lambda: ("rp", "h1")
    has = SimpleNamespace(backings=[SimpleNamespace(size_mib=held)]) if held else None
    driver.pool_memory = SimpleNamespace(find=lambda *_: has)
    if moves:
        driver._pond_check_running_guest(guest())
    else:
        with pytest.raises(exception.MigrationPreCheckError, match="CPU-less nodes of"):
            driver._pond_check_running_guest(guest())
