"""`make torture-pager`: everything that a guest with remote memory needs is killed and frozen: no word is wrong.

GUEST=rack (the default): a real guest, extended by its agent; data plane, lenders, agents and controllers are struck.
GUEST=standin, GUEST=qemu: a process or a guest with a data plane and lenders only (rdma/tests/data_plane/torture.py).
The figures come last. Exits 0 only when every target holds.
"""

import argparse
import logging
import random
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from rdma.tests.data_plane import torture  # noqa: E402 (threading first)
from rdma.tests.data_plane.lenders import TRANSPORTS  # noqa: E402
from tests.robustness import run as robustness  # noqa: E402
from tests.robustness.extension import report  # noqa: E402
from tests.robustness.extension.run import Options, run  # noqa: E402
from tests.robustness.plan import Counts  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when every target holds."""
    chosen = _parser().parse_args(arguments)
    if chosen.guest != "rack":
        named = {"minutes": chosen.minutes, "seed": chosen.seed, "guest": chosen.guest, "driver": chosen.driver}
        return torture.main([f"--{name}={value}" for name, value in named.items()])
    # Told to end, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = Options(chosen.minutes, chosen.seed, chosen.events)
    folder = (chosen.reports / f"torture-pager-{options.seed}").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Clients tell of every lost connection; that is what happens here all the time.
    logging.basicConfig(filename=folder / "run.log", level=logging.WARNING, force=True)
    print(f"seed {options.seed}; the same again: {options.command}", flush=True)
    print(f"logs: {folder}", flush=True)
    with robustness.servers(robustness.Options(options.seed, Counts(0, 0, 0))) as (broker, store, _):
        result = run(options, folder, broker, store, lambda line: print(line, flush=True))
    print("\n" + report.text(result))
    if found := report.missed(result):
        print(f"MISSED: {', '.join(found)}")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make torture-pager", description=__doc__)
    parser.add_argument("--minutes", type=_minutes, default=1.0, help="how long, in minutes, up to 1440 (MINUTES)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of all (SEED)")
    guests = ("rack", "standin", "qemu")
    parser.add_argument("--guest", choices=guests, default="rack", help="what is tortured with what (GUEST)")
    parser.add_argument("--events", type=int, default=0, help="of GUEST=rack: how many, 6 a minute by default (EVENTS)")
    parser.add_argument("--driver", choices=sorted(TRANSPORTS), default="shm", help="of the other guests (DRIVER)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder of the logs (REPORTS)")
    return parser


def _minutes(word: str) -> float:
    minutes = float(word)
    if not 0.0 < minutes <= 1440.0:
        raise argparse.ArgumentTypeError(f"{word}: choose more than 0, and at most 1440")
    return minutes


if __name__ == "__main__":
    sys.exit(main())
