"""Runs in the guest of bench-extension: each workload fills a memory of the same size, then does the same timed work.

workloads.py MIB LIMIT_SECONDS NAME... Prints a line `FIGURE {...}` for each: name, seconds, and pages that were swapped
meanwhile. A workload that is not done within the limit has no seconds; whoever is out of memory is told of as failed.
"""

import json
import math
import os
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

SOCKET = "/tmp/valkey"
KEYS_PER_MIB, VALUE_BYTES = 850, 1000
ROWS_PER_MIB, ROW_BYTES = 950, 1000
COLUMNS = 6


class Late(Exception):
    """The limit is over."""


def say(**figure: object) -> None:
    """Tell the host, on the console."""
    print("FIGURE", json.dumps(figure), flush=True)


def swapped() -> dict[str, int]:
    """Pages that went to the swap disk and came back, since the guest began."""
    fields = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return {name: int(fields[name]) for name in ("pswpin", "pswpout")}


def measured(name: str, limit: float, work: Callable[[float], None]) -> None:
    """Time a piece of work."""
    before, begun = swapped(), time.monotonic()
    try:
        work(limit)
        seconds: float | None = time.monotonic() - begun
    except (Late, subprocess.TimeoutExpired):
        seconds = None
    say(name=name, seconds=seconds, **{key: value - before[key] for key, value in swapped().items()})


def micro(mib: int, limit: float) -> None:
    """Iterate over an array and write to each entry, a page."""
    words = ["/opt/microbenchmark", str(mib), "4", "1", "sequential", str(limit)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        before = swapped()
        print("g", file=process.stdin, flush=True)
        found = json.loads(process.stdout.readline())
        process.stdin.close()
    if found["wrong"]:
        say(failed=f"micro: {found['wrong']} wrong words")
    seconds = found["seconds"] if found["whole"] else None
    say(name="micro", seconds=seconds, **{key: value - before[key] for key, value in swapped().items()})


def valkey(mib: int, limit: float) -> None:
    """Cache: values of a kilobyte, read at random by valkey-benchmark."""
    keys = str(mib * KEYS_PER_MIB)
    server = subprocess.Popen(
        ["valkey-server", "--port", "0", "--unixsocket", SOCKET, "--save", "", "--appendonly", "no", "--dir", "/tmp"],
        stdout=subprocess.DEVNULL,
    )
    load = ["valkey-benchmark", "-s", SOCKET, "-r", keys, "-d", str(VALUE_BYTES), "-q"]
    try:
        while not Path(SOCKET).exists():
            if server.poll() is not None:
                raise RuntimeError("valkey-server ended")
            time.sleep(0.05)
        subprocess.run([*load, "-t", "set", "-n", keys, "-P", "64"], stdout=subprocess.DEVNULL, check=True)
        timed = [*load, "-t", "get", "-n", str(mib * 150), "-P", "8", "-c", "8"]
        measured("valkey", limit, lambda left: _run(timed, left))
    finally:
        server.kill()
        server.wait()
        Path(SOCKET).unlink(missing_ok=True)


def _run(words: list[str], seconds: float) -> None:
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True, timeout=seconds)


def sqlite(mib: int, limit: float) -> None:
    """Transactions: rows of a kilobyte, changed by their number in no order."""
    rows = mib * ROWS_PER_MIB
    numbers = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {})"
    database = subprocess.Popen(
        ["sqlite3", ":memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert database.stdin
    assert database.stdout

    def ask(sql: str) -> None:
        assert database.stdin
        assert database.stdout
        print(f"{sql}; SELECT 'done';", file=database.stdin, flush=True)
        if "done" not in database.stdout.readline():
            raise Late

    ask(
        f"CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, filler BLOB); {numbers.format(rows)} "
        f"INSERT INTO account SELECT i, 0, zeroblob({ROW_BYTES}) FROM c"
    )
    change = (
        f"{numbers.format(mib * 40)} "
        f"UPDATE account SET balance = balance + 1 WHERE id IN (SELECT i * 104729 % {rows} FROM c)"
    )
    timer = threading.Timer(limit, database.kill)  # its answer does not come then
    timer.start()
    measured("sqlite", limit, lambda _left: ask(change))
    timer.cancel()
    database.kill()
    database.wait()


def analytics(mib: int, limit: float) -> None:
    """Query: the sum of products of columns, pair by pair."""
    count = mib * 2**20 // 8 // COLUMNS
    block = array("q", (value % 251 for value in range(8192)))
    columns = [block * (count // len(block)) for _ in range(COLUMNS)]

    def work(left: float) -> None:
        ends, step = time.monotonic() + left, 65536
        for price, quantity in zip(columns[::2], columns[1::2], strict=True):
            for at in range(0, len(price), step):
                math.sumprod(price[at : at + step], quantity[at : at + step])
                if time.monotonic() > ends:
                    raise Late

    measured("analytics", limit, work)


WORKLOADS = {"micro": micro, "valkey": valkey, "sqlite": sqlite, "analytics": analytics}


def main() -> None:
    """Run what was asked for; each in a process of its own, so that its memory goes with it."""
    mib, limit, *names = sys.argv[1:]
    os.environ["LC_ALL"] = "C"
    if len(names) == 1:
        WORKLOADS[names[0]](int(mib), float(limit))
        return
    for name in names:
        if subprocess.run([sys.executable, __file__, mib, limit, name], check=False).returncode:
            say(name=name, failed="it ended: out of memory, or see the console")


if __name__ == "__main__":
    main()
