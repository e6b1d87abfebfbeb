"""Runs a training in a child process of bounded memory and time; what the child does changes nothing but its folder."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.history import Lifetime
from pondstack.prediction import latency, latency_trainer, samples, trainer, worker
from pondstack.prediction.examples import dump
from pondstack.prediction.samples import Sample
from pondstack.prediction.trainer import Candidate, Settings

MIB = 1024 * 1024
NICENESS = 19
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Libraries take address space for each thread that they might use."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the child process: wall-clock time, and address space in MiB."""

    seconds: int
    memory_mib: int


Started = Callable[[subprocess.Popen[bytes]], object]
"""Is told of the child process, which may be killed at any time."""
Stored = tuple[dict[str, Any], bytes]
"""Manifest and blob."""


def _nobody(_child: subprocess.Popen[bytes]) -> None:
    pass


def train(
    lifetimes: Iterable[Lifetime],
    settings: Settings,
    running: Stored | None,
    now: datetime,
    limits: Limits,
    min_coverage: float,
    started: Started = _nobody,
) -> Candidate:
    """Return what was trained on these lifetimes; `running`: the model to beat. Raises BadRequest (too little history,
    a part of the extra `ml` missing) and Unavailable (killed, out of a limit).
    """
    order = {
        "kind": trainer.KIND,
        "settings": asdict(settings),
        "now": now.isoformat(),
        "min_coverage": min_coverage,
    }
    return _train(order, map(dump, lifetimes), running, limits, started)


def train_latency(
    items: Iterable[Sample],
    settings: latency_trainer.Settings,
    running: Stored | None,
    now: datetime,
    limits: Limits,
    started: Started = _nobody,
) -> Candidate:
    """Return what was trained on these samples; else as train()."""
    order = {"kind": latency.KIND, "settings": asdict(settings), "now": now.isoformat()}
    return _train(order, map(samples.dump, items), running, limits, started)


def _train(
    order: dict[str, Any], data: Iterable[str], running: Stored | None, limits: Limits, started: Started
) -> Candidate:
    with tempfile.TemporaryDirectory(prefix="pondstack-model-") as name:
        folder = Path(name)
        (folder / worker.ORDER).write_text(json.dumps(order))
        with (folder / worker.DATA).open("w") as lines:
            lines.writelines(f"{item}\n" for item in data)
        if running is not None:
            (folder / worker.RUNNING_MANIFEST).write_text(json.dumps(running[0]))
            (folder / worker.RUNNING_MODEL).write_bytes(running[1])
        _run(folder, limits, started)
        manifest = json.loads((folder / worker.MANIFEST).read_text())
        return Candidate((folder / worker.MODEL).read_bytes(), manifest)


def _bound(pid: int, limits: Limits) -> None:
    """From outside: Python code between fork and exec may hang in a process that has threads, as a leader has."""
    resource.prlimit(pid, resource.RLIMIT_AS, (limits.memory_mib * MIB, limits.memory_mib * MIB))
    resource.prlimit(pid, resource.RLIMIT_CPU, (limits.seconds, limits.seconds))
    os.setpriority(os.PRIO_PROCESS, pid, NICENESS)


def _run(folder: Path, limits: Limits, started: Started) -> None:
    command = [sys.executable, "-W", "ignore", "-m", worker.__name__, str(folder)]
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as child:
        try:
            _bound(child.pid, limits)
            started(child)
            code = child.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            raise Unavailable(
                f"the training took more than {limits.seconds} s and was killed; nothing is promoted "
                "([model] training_seconds, window_seconds)"
            ) from None
        finally:
            if child.stdin:
                child.stdin.close()
    error = folder / worker.ERROR
    if error.exists():
        raise BadRequest(f"nothing was trained: {error.read_text()}")
    if code:
        raise Unavailable(
            f"the training ended with {code}; nothing is promoted (killed, or out of [model] training_memory_mib)"
        )
