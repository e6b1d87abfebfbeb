"""The data plane over verbs, between two emulated hosts: a guest's pages come from a lender that has no process and no
CPU for them, and from the mirror when lender or data plane are killed.

The guest is a stand-in, a process that writes and verifies words (rdma/tests/data_plane/standin_guest.c).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.wait import wait_until
from rdma.tests.data_plane import builds
from rdma.tests.data_plane.processes import GUEST

from . import apparmor
from .conftest import Hardware
from .figures import Figures
from .host import EmulatedHost
from .rdma_hosts import two_hosts
from .test_rdma import SUSPEND, frozen

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1500)]

SEED = 20182
MIB, LOCAL_MIB = 8, 2
LEASES, LEASE_BYTES = 2, 4 * 2**20
PAGES = 400
"""So many come from a lender, or from the mirror, before a test goes on; the guest has 2048."""

DEADLINE_MS = 15000
"""Of an access: a host under emulation, on a busy machine, may stand still for seconds."""

WAIT_SECONDS = 300.0
PROGRAMS = "/root/programs"
CPUS = "for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do echo {} >$cpu; done"


@pytest.fixture(scope="module")
def hosts(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[EmulatedHost]]:
    """A lender, and a borrower that has the programs."""
    folder = tmp_path_factory.mktemp("programs")
    built = [
        builds.build(folder / "data_plane", builds.sources(*builds.FOLDERS), ("-O2",), builds.HOST_LIBRARIES),
        builds.standin_guest(folder),
    ]
    with two_hosts(hardware, tmp_path_factory.mktemp("pager"), 640) as hosts:
        for program in built:
            hosts[1].put(f"{PROGRAMS}/{program.name}", program.read_bytes(), mode=0o755)
        yield hosts


def await_store(paged: Any, name: str, more: int) -> dict[str, Any]:
    """Wait until a counter of the store has grown by so much; the view."""
    before, views = paged.view()["store"][name], []

    def grown() -> bool:
        views[:] = [paged.view()]
        return bool(views[0]["store"][name] >= before + more)

    assert wait_until(grown, WAIT_SECONDS, 0.5), f"{views}\n{paged.log()}"
    found: dict[str, Any] = views[0]
    return found


def start(hosts: Sequence[EmulatedHost]) -> Any:
    """Start a guest, all of it local, and its data plane."""
    programs = {"data_plane": f"{PROGRAMS}/data_plane", "standin_guest": f"{PROGRAMS}/standin_guest"}
    return hosts[1].remote("tests.hardware.guest.rdma_pager:Paged", **programs, mib=MIB, seed=SEED)


def begin(hosts: Sequence[EmulatedHost], lending: Any) -> Any:
    """Start a guest, all of it local, whose data plane is connected to the lender."""
    paged = start(hosts)
    lent = [lending.lend("borrower", LEASE_BYTES) for _ in range(LEASES)]
    paged.lease(lent[0][0], [key for _, key in lent], DEADLINE_MS)
    assert paged.view()["store"]["lender_writes"] == 0
    return paged


@pytest.fixture
def lending(hosts: Sequence[EmulatedHost]) -> Any:
    """A lender's process."""
    return hosts[0].remote("tests.hardware.guest.rdma:Lending")


def test_pages_come_from_a_lender_without_cpus(hosts: Sequence[EmulatedHost], lending: Any, figures: Figures) -> None:
    """It was frozen, and its CPUs but one were taken off, before the first byte was borrowed."""
    paged = start(hosts)
    lent = [lending.lend("borrower", LEASE_BYTES) for _ in range(LEASES)]
    keys = [lending.locate(key) for _, key in lent]
    paged.connect(lent[0][0], DEADLINE_MS)
    with frozen(hosts[0], lending._process.pid):
        hosts[0].run(["sh", "-ec", CPUS.format(0)]).check()
        assert hosts[0].get("/sys/devices/system/cpu/online") == b"0\n"
        paged.disclose(keys)
        paged.limit(LOCAL_MIB)
        view = await_store(paged, "lender_reads", PAGES)
        hosts[0].run(["sh", "-ec", CPUS.format(1)]).check()
    store, service = view["store"], view["service"]
    figures.add("pages of a guest, from a lender without CPUs", store["lender_reads"], "pages", f">= {PAGES}")
    figures.add("pages of that guest, from the mirror", store["mirror_reads"], "pages", "= 0")
    figures.add("its fault service, median (emulated)", service["p50_ns"] / 1e3, "us")
    assert (store["mirror_reads"], store["corrupt"]) == (0, 0)
    assert {lease["state"] for lease in view["leases"]} == {"active"}
    assert {lease["driver"] for lease in view["leases"]} == {"verbs"}
    paged.kill_data_plane()
    await_store(paged, "mirror_reads", PAGES)
    end(paged, figures)


def test_a_guest_that_apparmor_confines(
    hardware: Hardware, hosts: Sequence[EmulatedHost], lending: Any, tmp_path: Path
) -> None:
    """Libvirt's profile of a guest with our rules, and ours of the data plane; what they deny is named before."""
    policies = apparmor.compile_policies(hardware.files.root / "etc" / "apparmor.d", GUEST, tmp_path)
    programs = {"data_plane": f"{PROGRAMS}/data_plane", "standin_guest": f"{PROGRAMS}/standin_guest"}
    confined = hosts[1].remote(
        "tests.hardware.guest.confined:Confined", **programs, policy=policies.data_plane, mib=MIB, seed=SEED
    )
    guest, ours = f"libvirt-{GUEST} (enforce)", "pondstack-data-plane (enforce)"
    assert confined.labels() == ("unconfined", ours)
    (reason,) = confined.denials()
    assert "is unconfined: allow it in /etc/apparmor.d/local/pondstack-data-plane" in reason
    assert "AppArmor or SELinux denies it" in confined.attach()
    assert confined.start_confined(policies.stock)  # it may not read the script that is its emulator
    assert confined.start_confined(policies.with_rule) == "", confined.log()
    assert confined.labels() == (guest, ours)
    (reason,) = confined.denials()
    assert "may not make a userfaultfd" in reason
    assert "gets no userfaultfd: Operation not permitted" in confined.attach()
    confined.let_userfaultfd()
    assert (confined.denials(), confined.attach()) == ([], ""), confined.log()
    lent = [lending.lend("borrower", LEASE_BYTES) for _ in range(LEASES)]
    confined.lease(lent[0][0], [key for _, key in lent], DEADLINE_MS)
    confined.limit(LOCAL_MIB)
    await_store(confined, "lender_reads", PAGES // 4)
    assert confined.finish()["wrong"] == 0


@pytest.mark.parametrize("how", ["killed", "suspended"])
def test_a_lender_that_ends_and_the_mirror(
    hosts: Sequence[EmulatedHost], lending: Any, figures: Figures, how: str
) -> None:
    """The suspended one is the last of all tests here: nobody wakes it."""
    paged = begin(hosts, lending)
    paged.limit(LOCAL_MIB)
    await_store(paged, "lender_reads", PAGES // 4)
    if how == "killed":
        hosts[0].run(["kill", "-9", str(lending._process.pid)]).check()
    else:
        hosts[0].start(["sh", "-ec", SUSPEND])
    await_store(paged, "mirror_reads", PAGES // 4)

    def lost() -> bool:
        return {lease["state"] for lease in paged.view()["leases"]} == {"lost"}

    assert wait_until(lost, WAIT_SECONDS, 0.5), paged.view()
    end(paged, figures)


def end(paged: Any, figures: Figures) -> None:
    """All pages come home, and none is wrong."""
    counted = paged.finish()
    figures.add("words of a guest that were wrong", counted["wrong"], "", "= 0")
    figures.add("its accesses to pages that were not resident", counted["missing"] / counted["accesses"] * 100, "%")
    assert counted["wrong"] == 0
