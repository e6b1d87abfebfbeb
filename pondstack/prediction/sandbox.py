"""Runs a training in a child process of bounded memory and time; what the child does changes nothing but its folder."""

import json
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from pondstack import bounded_process
from pondstack.bounded_process import Limits, Started
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.history import Lifetime
from pondstack.prediction import latency, latency_trainer, samples, trainer, worker
from pondstack.prediction.examples import dump
from pondstack.prediction.samples import Sample
from pondstack.prediction.trainer import Candidate, Settings

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


def _run(folder: Path, limits: Limits, started: Started) -> None:
    child = bounded_process.begin(worker.__name__, folder, limits)
    try:
        started(child)
        code = child.wait(limits.seconds)
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"the training took more than {limits.seconds} s and was killed; nothing is promoted "
            "([model] training_seconds, window_seconds)"
        ) from None
    finally:
        bounded_process.end(child)
    error = folder / worker.ERROR
    if error.exists():
        raise BadRequest(f"nothing was trained: {error.read_text()}")
    if code:
        raise Unavailable(
            f"the training ended with {code}; nothing is promoted (killed, or out of [model] training_memory_mib)"
        )
