"""The data plane over verbs, between two emulated hosts: what confines a guest, and the mirror when a lender is gone.

That pages come from a lender without CPUs, and from the mirror when the data plane is killed: test_rdma.py.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pondstack_rack.wait import wait_until
from rdma.tests.data_plane.processes import GUEST

from . import apparmor, paged_guest
from .conftest import Hardware
from .figures import Figures
from .host import EmulatedHost
from .paged_guest import DEADLINE_MS, LEASE_BYTES, LEASES, LOCAL_MIB, MIB, PAGES, PROGRAMS, SEED, WAIT_SECONDS
from .rdma_hosts import two_hosts
from .test_rdma import SUSPEND

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def hosts(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[EmulatedHost]]:
    """A lender, and a borrower that has the programs."""
    with two_hosts(hardware, tmp_path_factory.mktemp("pager"), 640) as hosts:
        paged_guest.install(hosts[1], tmp_path_factory.mktemp("programs"))
        yield hosts


def begin(hosts: Sequence[EmulatedHost], lending: Any) -> Any:
    """Start a guest, all of it local, whose data plane is connected to the lender."""
    paged = paged_guest.start(hosts[1])
    lent = [lending.lend("borrower", LEASE_BYTES) for _ in range(LEASES)]
    paged.lease(lent[0][0], [key for _, key in lent], DEADLINE_MS)
    assert paged.view()["store"]["lender_writes"] == 0
    return paged


@pytest.fixture
def lending(hosts: Sequence[EmulatedHost]) -> Any:
    """A lender's process."""
    return hosts[0].remote("tests.hardware.guest.rdma:Lending")


def test_a_guest_that_apparmor_confines(
    hardware: Hardware, hosts: Sequence[EmulatedHost], lending: Any, tmp_path: Path
) -> None:
    """Libvirt's profile of a guest with our rules, and ours of the data plane; what they deny is named before."""
    policies = apparmor.compile_policies(hardware.files.root / "etc" / "apparmor.d", GUEST, tmp_path)
    confined = hosts[1].remote(
        "tests.hardware.guest.confined:Confined", **PROGRAMS, policy=policies.data_plane, mib=MIB, seed=SEED
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
    paged_guest.await_store(confined, "lender_reads", PAGES // 4)
    assert confined.finish()["wrong"] == 0


@pytest.mark.parametrize("how", ["killed", "suspended"])
def test_a_lender_that_ends_and_the_mirror(
    hosts: Sequence[EmulatedHost], lending: Any, figures: Figures, how: str
) -> None:
    """The suspended one is the last of all tests here: nobody wakes it."""
    paged = begin(hosts, lending)
    paged.limit(LOCAL_MIB)
    paged_guest.await_store(paged, "lender_reads", PAGES // 4)
    if how == "killed":
        hosts[0].run(["kill", "-9", str(lending._process.pid)]).check()
    else:
        hosts[0].start(["sh", "-ec", SUSPEND])
    paged_guest.await_store(paged, "mirror_reads", PAGES // 4)

    def lost() -> bool:
        return {lease["state"] for lease in paged.view()["leases"]} == {"lost"}

    assert wait_until(lost, WAIT_SECONDS, 0.5), paged.view()
    paged_guest.end(paged, figures)
