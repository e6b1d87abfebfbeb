"""`make robustness MITIGATIONS=50`: agents, controllers, nova-compute, database killed at each step of mitigations.

On a rack of its own: real services, two libvirt hosts with real guests, two fake computes. The last lines are the table
of the steps and a verdict; exits 0 only when every target holds. PONDSTACK_TEST_RACK=DIR uses the running rack there.
"""

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from pondstack_rack import ports  # noqa: E402 (threading first)
from pondstack_rack.layout import PORTS, Sizes  # noqa: E402
from tests.robustness.mitigations import report  # noqa: E402
from tests.robustness.mitigations.rack import KilledRack, Processes  # noqa: E402
from tests.robustness.mitigations.report import Run  # noqa: E402
from tests.robustness.mitigations.run import SLICES, Runner  # noqa: E402

RUNNING = "PONDSTACK_TEST_RACK"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when every target holds."""
    parser = argparse.ArgumentParser(prog="make robustness", description=__doc__.partition("\n")[0])
    parser.add_argument("--mitigations", type=int, default=50, help="kills, each in a mitigation (MITIGATIONS)")
    parser.add_argument("--seed", type=int, default=1, help="what the plan and all choices follow from (SEED)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder of the reports (REPORTS)")
    options = parser.parse_args(arguments)
    if options.mitigations < 1:
        parser.error(f"MITIGATIONS={options.mitigations}: choose at least 1")
    if os.geteuid() != 0:
        parser.error("the rack needs root (namespaces, libvirt): run as root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Interrupted once, it ends after the present kill and judges what there is.
    early = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: early.set())
    folder = (options.reports / f"robustness-mitigations-{options.seed}").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    logging.basicConfig(filename=folder / "run.log", level=logging.WARNING, force=True)
    known = Run(options.seed, options.mitigations, (), (), 0.0)
    print(f"seed {options.seed}; the same again: {known.command}", flush=True)
    print(f"logs and report: {folder}", flush=True)
    with _rack(folder) as rack:
        processes = Processes(rack)
        try:
            runner = Runner(rack, processes, options.seed, options.mitigations, lambda line: print(line, flush=True))
            result = runner.run(early.is_set)
        finally:
            processes.close()
    report.save(result, folder)
    for item in result.unclean:
        print(f"left over: {item}")
    print("\n" + report.text(result))
    return 1 if report.missed(result) else 0


@contextmanager
def _rack(folder: Path) -> Iterator[KilledRack]:
    """Bring a rack up in a short folder, and remove it at the end; its logs stay with the report."""
    if os.environ.get(RUNNING):
        yield KilledRack.open(Path(os.environ[RUNNING]))
        return
    # Short: the address of a Unix socket has 107 bytes.
    root = Path(tempfile.mkdtemp(prefix="killed-", dir="/tmp"))
    rack = KilledRack(root, Sizes(2, 2, SLICES, ports.free_base(PORTS)))
    try:
        rack.up()
        yield rack
    finally:
        shutil.copytree(rack.layout.log, folder / "logs", dirs_exist_ok=True)
        rack.down()


if __name__ == "__main__":
    sys.exit(main())
