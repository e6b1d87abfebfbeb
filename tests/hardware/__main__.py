"""Boots one emulated host for people: `python -m tests.hardware`, then log in with the command that it prints."""

import argparse
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from . import code_disk
from .host import EmulatedHost
from .machine import Machine
from .qemu import Files

GIB = 2**30


def main() -> None:
    """Boot, print how to log in, run until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardware", description=__doc__)
    parser.add_argument("--slices", type=int, default=4, help="GiB of the CXL device (default 4)")
    parser.add_argument("--memory", type=int, default=1536, help="MiB of the host's own memory (default 1536)")
    parser.add_argument("--network", action="store_true", help="let the host reach this machine as 10.0.2.2")
    wanted = parser.parse_args()
    files = Files.built()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="hardware-", dir="/tmp") as folder:
        memory = Path(folder, "memory")
        with memory.open("wb") as file:
            file.truncate(wanted.slices * GIB)
        machine = Machine("host1", devices=(memory,), memory_mib=wanted.memory, network=wanted.network)
        with EmulatedHost(machine, files, code_disk.build(files, Path(folder))) as host:
            print(f"console: {host.folder}/console.log")
            print(f"log in:  socat -,raw,echo=0,escape=0x1d {host.folder}/login")
            print("Ctrl-] leaves the shell, Ctrl-C here switches the host off", flush=True)
            with suppress(KeyboardInterrupt):
                signal.pause()
    print("switched off")


if __name__ == "__main__":
    main()
