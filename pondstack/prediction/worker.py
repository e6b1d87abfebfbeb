"""The process that trains, `python -m pondstack.prediction.worker FOLDER`: files in, files out, bounded by its parent.

The folder holds order.json and data.jsonl (lifetimes or samples, by the order's kind), and running.json and
running.onnx where a model runs. It leaves model.onnx and manifest.json, or error.txt. It ends when its parent does: its
standard input is closed then.
"""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pondstack import bounded_process
from pondstack.domain.errors import BadRequest, PondError
from pondstack.prediction import examples, latency, latency_trainer, samples, trainer
from pondstack.prediction.trainer import Candidate

ORDER, DATA, MODEL, MANIFEST, ERROR = "order.json", "data.jsonl", "model.onnx", "manifest.json", "error.txt"
RUNNING_MODEL, RUNNING_MANIFEST = "running.onnx", "running.json"
Loaded = TypeVar("Loaded")


def work(folder: Path) -> None:
    """Train what the folder's order asks for; the manifest comes last and makes the result whole."""
    order: dict[str, Any] = json.loads((folder / ORDER).read_text())
    candidate = (_latency if order["kind"] == latency.KIND else _untouched)(folder, order)
    _say("writing")
    (folder / MODEL).write_bytes(candidate.blob)
    (folder / MANIFEST).write_text(json.dumps(candidate.manifest))


def _untouched(folder: Path, order: dict[str, Any]) -> Candidate:
    now = datetime.fromisoformat(order["now"])
    source = examples.LifetimeFile(folder / DATA)
    _say("reading")
    data = examples.read(source, datetime.min.replace(tzinfo=UTC), now, order["min_coverage"])
    running = _running(folder, trainer.Running.load)
    return trainer.train(data, trainer.Settings(**order["settings"]), running, now, _say)


def _latency(folder: Path, order: dict[str, Any]) -> Candidate:
    _say("reading")
    data = samples.gather(samples.read(folder / DATA))
    running = _running(folder, latency_trainer.Running.load)
    settings = latency_trainer.Settings(**order["settings"])
    return latency_trainer.train(data, settings, running, datetime.fromisoformat(order["now"]), _say)


def _running(folder: Path, load: Callable[[dict[str, Any], bytes], Loaded]) -> Loaded | None:
    """Return the running model; one that this release cannot run is not compared, and is beaten by any."""
    path = folder / RUNNING_MANIFEST
    if not path.exists():
        return None
    try:
        return load(json.loads(path.read_text()), (folder / RUNNING_MODEL).read_bytes())
    except BadRequest as error:
        _say(f"what runs is not compared: {error.message}")
        return None


def _say(text: str) -> None:
    print(f"model train: {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Work in the folder of the command line; 1 with error.txt where that cannot be done."""
    folder = Path(sys.argv[1])
    bounded_process.end_with_parent()
    try:
        work(folder)
    except MemoryError:
        (folder / ERROR).write_text("it needs more memory than [model] training_memory_mib allows: raise that option")
        return 1
    except ImportError as error:
        last = str(error).strip().splitlines()[-1]
        hint = "install pondstack with the extra ml (pip install 'pondstack[ml]'), or raise [model] training_memory_mib"
        (folder / ERROR).write_text(f"{last}: {hint}")
        return 1
    except PondError as error:
        (folder / ERROR).write_text(error.message)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
