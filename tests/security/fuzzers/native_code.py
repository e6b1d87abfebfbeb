"""The compiled hot paths, built with sanitizers, in processes that call them as Python's own code never does.

Of those, C code parses no bytes of others: what an attacker can choose are words of shared memory, and numbers that
become the arguments of these calls. The data plane's block devices parse what NBD clients say.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from rdma.tests import sanitized
from rdma.tests.data_plane.builds import nbd_fuzz
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

HERE = Path(sanitized.__file__).parent
HEADERS = Path("/usr/include/infiniband/verbs.h")
SESSIONS = 20
"""Of NBD, with one seed: of correct clients, and as many damaged ones."""
_COUNTS = re.compile(r"(\d+) tried, (\d+) refused, (\d+) accepted")


class NativeCode(Target):
    """A step is a process with a seed of its own."""

    name = "native code"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._folder = Path(self.opened.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-")))
        shm = self._folder / "_native.abi3.so"
        sanitized.build([sanitized.NATIVE / name for name in ("shm_access.c", "operation.c", "watch.c")], shm)
        self._runs = [("native_process.py", str(shm), str(self._folder))]
        if HEADERS.exists():
            verbs = self._folder / "_verbs.abi3.so"
            names = ("requester.c", "transfers.c", "operation.c", "links/rc_conn.c")
            sanitized.build([*(sanitized.NATIVE / name for name in names), HERE / "fake_verbs.c"], verbs)
            self._runs.append(("requester_process.py", str(verbs)))

    def attack(self) -> None:
        """Run one build with a new seed."""
        script, *arguments = self._runs[self.steps % len(self._runs)]
        number = self.dice.randrange(2**31)
        try:
            said = sanitized.run(script, *arguments, str(number))
        except AssertionError as error:
            self.fault(f"{script} with seed {number}: {error}")
            return
        tried, refused, accepted = (int(word) for word in _COUNTS.findall(said)[0])
        self.counts.update({"tried": tried, REFUSED: refused, ACCEPTED: accepted})


class BlockDevices(Target):
    """NBD clients that say anything. A correct session is compared with a model; a damaged one does no harm."""

    name = "block devices"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._program = nbd_fuzz(Path(self.opened.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-"))))

    def attack(self) -> None:
        """Run sessions with a new seed."""
        number = self.dice.randrange(2**31)
        command = [str(self._program), str(number), str(SESSIONS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.fault(f"nbd_fuzz {number} {SESSIONS}: {done.stderr[-2000:]}")
            return
        tried, refused, accepted = (int(word) for word in _COUNTS.findall(done.stdout)[0])
        self.counts.update({"tried": tried, REFUSED: refused, ACCEPTED: accepted})
