"""Times of reads in a host over its own device: through our transport, and by perftest."""

import re
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pondstack_rdma.model import Key, Operation, Read, Ticket
from pondstack_rdma.verbs import VerbsTransport

PAGE_BYTES = 4096
DEPTH = 16
_SECONDS = 60.0
_DEVICE = ["-d", "rxe0", "-x", "1", "-s", str(PAGE_BYTES)]


class Times:
    """A borrower of a lender in another process of the host, as perftest's two sides are."""

    def __init__(self, ticket: Ticket, key: Key) -> None:
        self._key, self._address = key, ticket.address.rpartition(":")[0]
        self._link = VerbsTransport().connect(ticket, _SECONDS)
        self._link.open(key)
        self._buffer = bytearray(PAGE_BYTES)
        self._batch: list[Operation] = [Read(key, n * PAGE_BYTES, bytearray(PAGE_BYTES)) for n in range(DEPTH)]

    def read(self, count: int) -> float:
        """Return the lower quartile of the microseconds of one read of ours."""
        times = []
        for _ in range(count):
            begun = time.perf_counter()
            self._link.read_into(self._key, 0, self._buffer)
            times.append(time.perf_counter() - begun)
        return quartile(times) * 1e6

    def native_read(self, count: int) -> float:
        """Return the same of reads by the driver's compiled part, one right after the other as perftest makes them."""
        times = memoryview(self._link._native.time_reads(self._key, 0, self._buffer, count)).cast("q")
        if len(times) < count:
            raise RuntimeError(f"{len(times)} of {count} reads went well")
        return quartile(times) / 1e3

    def perftest_read(self, count: int, *, events: bool) -> float:
        """Return the same of ib_read_lat, which sleeps until events, or polls."""
        output = self._perftest("ib_read_lat", ["-n", str(count), "-U", *(["-e"] if events else [])])
        found = re.findall(r"^\d+, (\S+)$", output, re.MULTILINE)
        return quartile([float(each) for each in found])

    def batches(self, count: int) -> float:
        """Return MiB/s of so many reads of ours, DEPTH at a time."""
        begun = time.perf_counter()
        for _ in range(count // DEPTH):
            self._link.batch(self._batch)
        return count // DEPTH * DEPTH * PAGE_BYTES / 2**20 / (time.perf_counter() - begun)

    def perftest_batches(self, count: int) -> float:
        """Return the average MiB/s of ib_read_bw with so many reads, DEPTH under way."""
        depth = ["-t", str(DEPTH), "-o", str(DEPTH), "-e"]
        output = self._perftest("ib_read_bw", ["-n", str(count), *depth])
        (found,) = [line.split() for line in output.splitlines() if line.split()[:1] == [str(PAGE_BYTES)]]
        return float(found[3])

    def _perftest(self, tool: str, options: list[str]) -> str:
        """Run both sides; the client's output. The client tries again until the server listens."""
        command, ends = [tool, *_DEVICE, *options], time.monotonic() + _SECONDS
        log = Path("/tmp", tool)
        with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as server:
            while True:
                done = subprocess.run([*command, self._address], capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    break
                if server.poll() is not None or time.monotonic() > ends:
                    server.kill()
                    raise RuntimeError(f"{tool}: {done.stdout}{done.stderr}{log.read_text()}")
        return done.stdout


def quartile(times: Sequence[float]) -> float:
    """Return the lower one: other work of the machine only ever adds."""
    return statistics.quantiles(times, n=4)[0]
