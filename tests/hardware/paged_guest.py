"""A guest in an emulated host whose pages are with a lender in another one, as tests see it.

The guest is a stand-in, a process that writes and verifies words (rdma/tests/data_plane/standin_guest.c).
"""

from pathlib import Path
from typing import Any

from pondstack_rack.wait import wait_until
from rdma.tests.data_plane import builds

from .figures import Figures
from .host import EmulatedHost

SEED = 20182
MIB, LOCAL_MIB = 8, 2
LEASES, LEASE_BYTES = 2, 4 * 2**20
PAGES = 400
"""So many come from a lender, or from the mirror, before a test goes on; the guest has 2048."""

DEADLINE_MS = 15000
"""Of an access: a host under emulation, on a busy machine, may stand still for seconds."""

WAIT_SECONDS = 300.0
FOLDER = "/root/programs"
PROGRAMS = {name: f"{FOLDER}/{name}" for name in ("data_plane", "standin_guest")}
"""Where a borrower has them, by the names of what `Paged` is told."""


def install(host: EmulatedHost, folder: Path) -> None:
    """Build the programs in `folder` of this machine, and put them into a borrower."""
    for program in (
        builds.build(folder / "data_plane", builds.sources(*builds.FOLDERS), ("-O2",), builds.HOST_LIBRARIES),
        builds.standin_guest(folder),
    ):
        host.put(PROGRAMS[program.name], program.read_bytes(), mode=0o755)


def start(host: EmulatedHost) -> Any:
    """Start a guest, all of it local, and its data plane."""
    return host.remote("tests.hardware.guest.rdma_pager:Paged", **PROGRAMS, mib=MIB, seed=SEED)


def await_store(paged: Any, name: str, more: int) -> dict[str, Any]:
    """Wait until a counter of the store has grown by so much; the view."""
    before, views = paged.view()["store"][name], []

    def grown() -> bool:
        views[:] = [paged.view()]
        return bool(views[0]["store"][name] >= before + more)

    assert wait_until(grown, WAIT_SECONDS, 0.5), f"{views}\n{paged.log()}"
    found: dict[str, Any] = views[0]
    return found


def end(paged: Any, figures: Figures) -> None:
    """All pages come home, and none is wrong."""
    counted = paged.finish()
    figures.add("words of a guest that were wrong", counted["wrong"], "", "= 0")
    figures.add("its accesses to pages that were not resident", counted["missing"] / counted["accesses"] * 100, "%")
    assert counted["wrong"] == 0
