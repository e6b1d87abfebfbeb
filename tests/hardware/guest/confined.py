"""A process of this host that AppArmor confines as libvirt does guests, and its data plane under our profile.

The stand-in guest has the place of a QEMU that libvirt's profile lets run, and the data plane one of those of its own.
"""

import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pondstack_agent.data_plane.confinement import Confinement
from pondstack_rdma.model import Key, Ticket
from rdma.tests.data_plane.processes import GUEST, DataPlane, RefusedError, StandinGuest
from tests.hardware.guest.rdma_pager import LENDER, insist

POLICY = Path("/sys/kernel/security/apparmor")
PROGRAM = Path("/usr/local/lib/python3/dist-packages/pondstack_rdma/pondstack-data-plane")
EMULATOR = Path("/usr/bin/qemu-kvm")
FOLDER = Path("/var/lib/pondstack-data-plane")
EMULATOR_OF_OURS = Path("/usr/bin/qemu-pondstack")
_SHIM = f"""#!/bin/sh
exec /opt/code/bin/pondstack-qemu --state-dir /var/lib/pondstack/agent --host "$(hostname)" --qemu {EMULATOR} -- "$@"
"""


class Confined:
    """A guest of `mib`, which nothing confines at first; `seed` says what it writes. Policies are compiled ones."""

    def __init__(self, data_plane: str, standin_guest: str, policy: bytes, mib: int, seed: int) -> None:
        """`policy`: of the data plane."""
        self._mib, self._seed = mib, seed
        for program, place in ((data_plane, PROGRAM), (standin_guest, EMULATOR)):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(program, place)
        EMULATOR_OF_OURS.write_text(_SHIM)
        EMULATOR_OF_OURS.chmod(0o755)
        FOLDER.mkdir(exist_ok=True)
        if not POLICY.is_dir():
            subprocess.run(["mount", "-t", "securityfs", "security", "/sys/kernel/security"], check=True)
        self.load(policy)
        # Processes of tests end with the thread that started them, and each call from outside has a thread of its own.
        self._starter, self._confined = ThreadPoolExecutor(1), ThreadPoolExecutor(1, initializer=_confine)
        self._plane = DataPlane(PROGRAM, FOLDER / "plane")
        self._starter.submit(self._plane.start).result()
        self._plane.await_ready()
        self._guest = self._starter.submit(self._start_guest, EMULATOR).result()

    def load(self, policy: bytes) -> None:
        """Load a profile, or replace the one of its name, also for processes that run."""
        (POLICY / ".replace").write_bytes(policy)

    def let_userfaultfd(self) -> None:
        """Let processes without capabilities make one."""
        Path("/proc/sys/vm/unprivileged_userfaultfd").write_text("1")

    def start_confined(self, policy: bytes) -> str:
        """Have a guest with this profile in place of this one, started by our emulator; '' or why it does not start."""
        self.load(policy)
        self._guest.kill()
        try:
            self._guest = self._confined.submit(self._start_guest, EMULATOR_OF_OURS).result()
        except (AssertionError, OSError) as error:
            return repr(error)
        return ""

    def labels(self) -> tuple[str, str]:
        """Return the labels of the guest and of the data plane."""
        assert self._plane.process
        pids = (self._guest.pid, self._plane.process.pid)
        guest, plane = ((Path("/proc") / str(pid) / "attr/current").read_text().strip() for pid in pids)
        return guest, plane

    def denials(self) -> list[str]:
        """Return what the agent's preflight says of this guest."""
        return Confinement(self._plane.folder, 60.0)(self._guest.pid)

    def attach(self) -> str:
        """Attach the guest, all of it local; '' or why not."""
        try:
            self._plane.attach(self._guest, FOLDER / "mirror", self._mib)
        except RefusedError as error:
            return str(error)
        return ""

    def lease(self, ticket: Ticket, keys: Sequence[Key], deadline_ms: int) -> None:
        """Have the data plane use a lender's keys, over verbs."""
        shown = {"ticket": ticket.to_dict(), "keys": [key.to_dict() for key in keys]}
        insist(self._plane, verb="lease", guest=GUEST, lender=LENDER, deadline_ms=deadline_ms, **shown)

    def limit(self, mib: int) -> None:
        """Give the guest so much local memory."""
        self._plane.ask(verb="limit", guest=GUEST, limit_mib=mib)

    def view(self) -> dict[str, Any]:
        """Return what the data plane tells of the guest."""
        return self._plane.view()

    def log(self) -> str:
        """Return what the data plane has printed, and what the kernel denied."""
        denied = subprocess.run("dmesg | grep DENIED", shell=True, capture_output=True, text=True, check=False).stdout
        return f"{self._plane.log()}\n{denied}"

    def finish(self) -> dict[str, int]:
        """Bring all pages home, and have the guest verify all of its memory; what it counted."""
        self._plane.detach()
        counted = self._guest.finish()
        self._plane.stop()
        return counted

    def _start_guest(self, program: Path) -> StandinGuest:
        return StandinGuest(program, self._mib, threads=1, seed=self._seed)


def _confine() -> None:
    """Have what children of this thread execute be confined, as libvirt has QEMU."""
    Path("/proc/thread-self/attr/exec").write_text(f"exec libvirt-{GUEST}")
