"""Commands that kill on a rack of their own: options, the rack's life, the report. PONDSTACK_TEST_RACK=DIR: on that."""

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pondstack_rack import ports
from pondstack_rack.layout import PORTS, Sizes
from pondstack_rack.rack import Rack
from tests.robustness.mitigations.rack import Processes

RUNNING = "PONDSTACK_TEST_RACK"

Say = Callable[[str], None]
Early = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Command:
    """One of `make robustness`. `noun`: what is counted, in the plural; it names the option, and the reports' folder.

    `run` does so many from a seed; `report` has text, missed and save of what that returns.
    """

    noun: str
    default: int
    help: str
    rack: type[Rack]
    sizes: Sizes
    run: Callable[[Rack, Processes, int, int, Say, Early], Any]
    report: Any

    def replay(self, seed: int, count: int) -> str:
        """Return what does the same again."""
        return f"make robustness {self.noun.upper()}={count} SEED={seed}"


def main(command: Command, description: str, arguments: Sequence[str] | None = None) -> int:
    """Return 0 when every target holds."""
    options = _parse(command, description, arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Interrupted once, it ends after the present one and judges what there is.
    early = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: early.set())
    folder = (options.reports / f"robustness-{command.noun}-{options.seed}").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    logging.basicConfig(filename=folder / "run.log", level=logging.WARNING, force=True)
    print(f"seed {options.seed}; the same again: {command.replay(options.seed, options.count)}", flush=True)
    print(f"logs and report: {folder}", flush=True)
    with _rack(command, folder) as rack:
        processes = Processes(rack)
        try:
            result = command.run(rack, processes, options.seed, options.count, _say, early.is_set)
        finally:
            processes.close()
    command.report.save(result, folder)
    for item in result.unclean:
        print(f"left over: {item}")
    print("\n" + command.report.text(result))
    return 1 if command.report.missed(result) else 0


def _parse(command: Command, description: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    name = command.noun.upper()
    parser = argparse.ArgumentParser(prog="make robustness", description=description)
    parser.add_argument(
        f"--{command.noun}", dest="count", type=int, default=command.default, help=f"{command.help} ({name})"
    )
    parser.add_argument("--seed", type=int, default=1, help="what the plan and all choices follow from (SEED)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder of the reports (REPORTS)")
    options = parser.parse_args(arguments)
    if options.count < 1:
        parser.error(f"{name}={options.count}: choose at least 1")
    if os.geteuid() != 0:
        parser.error("the rack needs root (namespaces, libvirt): run as root")
    return options


def _say(line: str) -> None:
    print(line, flush=True)


@contextmanager
def _rack(command: Command, folder: Path) -> Iterator[Rack]:
    """Bring a rack up in a short folder, and remove it at the end; its logs stay with the report."""
    if os.environ.get(RUNNING):
        yield command.rack.open(Path(os.environ[RUNNING]))
        return
    # Short: the address of a Unix socket has 107 bytes.
    root = Path(tempfile.mkdtemp(prefix="killed-", dir="/tmp"))
    rack = command.rack(root, replace(command.sizes, port_base=ports.free_base(PORTS)))
    try:
        rack.up()
        yield rack
    finally:
        shutil.copytree(rack.layout.log, folder / "logs", dirs_exist_ok=True)
        rack.down()
