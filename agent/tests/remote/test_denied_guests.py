"""A guest's process that the host would deny the data plane is told of with the reason, before anything is tried."""

import os
from pathlib import Path

import pytest

from pondstack.domain.errors import Conflict, HostUnusable
from pondstack_agent.borrower.records import Store
from pondstack_agent.data_plane.denials import Denials, nothing_denied
from pondstack_agent.data_plane.errors import AttachDenied
from pondstack_agent.records import Records
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.extensions import ExtensionLimits, Extensions
from pondstack_agent.remote.records import Consumer, Consumers, State

from ..data_plane.standin import StandinDataPlane

GUEST = "7ac7e33b-55c9-4f7f-8b23-c4a1f2c52f3b"


@pytest.fixture
def consumers(tmp_path: Path) -> Consumers:
    """An instance has borrowed 4 MiB."""
    made = Consumers(Records(tmp_path / "remote"), lambda: 0.0)
    made.put(Consumer(GUEST, "op", True, 4, str(tmp_path / "mirror"), 0.0, state=State.ACTIVE))
    return made


def extensions(consumers: Consumers, plane: StandinDataPlane, folder: Path, denials: Denials) -> Extensions:
    borrowed = Borrowed(Store(Records(folder / "borrowing"), lambda: 0.0))
    return Extensions(consumers, borrowed, plane, plane.find, ExtensionLimits(), started=plane.started, denials=denials)


def mine(consumers: Consumers) -> Consumer:
    found = consumers.get(GUEST)
    assert found
    return found


def test_a_host_that_denies_all_guests_borrows_for_none(consumers: Consumers, tmp_path: Path) -> None:
    """nova-compute hears by what, and the server is built elsewhere."""
    denying = extensions(consumers, StandinDataPlane(), tmp_path, lambda pid: [] if pid else ["ptrace_scope is 3"])
    with pytest.raises(HostUnusable, match="no guest of this host can have remote memory: ptrace_scope is 3"):
        denying.make(mine(consumers))
    extensions(consumers, StandinDataPlane(), tmp_path, nothing_denied).make(mine(consumers))


def test_a_guest_that_is_denied_is_not_tried(consumers: Consumers, tmp_path: Path) -> None:
    plane = StandinDataPlane()
    plane.boot(GUEST, 8, pid=os.getpid())
    denying = extensions(consumers, plane, tmp_path, lambda pid: [f"process {pid} has a debugger", "and more"])
    with pytest.raises(AttachDenied) as caught:
        denying.extend(mine(consumers), 8, 4)
    assert isinstance(caught.value, Conflict)
    assert f"cannot have remote memory: process {os.getpid()} has a debugger; and more" in caught.value.message
    assert "attach" not in plane.told
    assert mine(consumers).extension is None
    extended = extensions(consumers, plane, tmp_path, nothing_denied).extend(mine(consumers), 8, 4)
    assert extended.extension is not None
    assert plane.told.count("attach") == 1
    denying.keep(mine(consumers))  # it is served: nobody attaches it, so nobody denies it
