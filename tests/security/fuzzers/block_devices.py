"""NBD clients of a block device that say anything: the C code that takes it, with sanitizers, in processes of its own.

Each session of a correct client is compared with a model byte by byte; one that is damaged may do no harm.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from rdma.tests.data_plane.builds import nbd_fuzz
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

SESSIONS = 20
"""With one seed, of correct clients, and as many damaged ones."""
_COUNTS = re.compile(r"(\d+) tried, (\d+) refused, (\d+) accepted")


class BlockDevices(Target):
    """A step is a process with a seed of its own."""

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
