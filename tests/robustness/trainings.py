"""Trainings in processes of their own, for tests that kill them: a leader's night, and pondstack-manage model train.

`python -m tests.robustness.trainings nightly URL` has a night for each line of its input, and says "ended" after each;
`... manage URL CANDIDATE` does what the command does, with a candidate that was trained before, and says "promoting"
when it is stored and does not serve yet, and then waits for its input.
"""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg
from sqlalchemy import update

from pondstack.conf import model, prediction, sizing
from pondstack.controller.history import candidates
from pondstack.controller.history.nightly import Nightly
from pondstack.db.connection.engine import Database
from pondstack.db.models import ModelRow
from pondstack.db.read.history import SqlHistory
from pondstack.db.store import registry
from pondstack.prediction.trainer import KIND, Candidate

DAY = 86400.0


def options() -> Any:
    """Return the options that a training needs, as they are by default; the night is at this hour."""
    conf = cfg.ConfigOpts()
    for group in (model, prediction, sizing):
        group.register_opts(conf)
    conf([])
    conf.set_override("train_at_hour", datetime.now(UTC).hour, group="model")
    return conf


def nightly(database: Database) -> None:
    """Have a night for each line."""
    conf = options()
    reader = SimpleNamespace(history=SqlHistory(database, conf.prediction.gap_seconds))
    resources: Any = SimpleNamespace(conf=conf, database=database, reader=reader)
    for _ in sys.stdin:
        database.write(lambda session: session.execute(update(ModelRow).values(created_at=time.time() - 2 * DAY)))
        Nightly(resources, lambda _session: None).run()
        say("ended")


def manage(database: Database, folder: Path) -> None:
    """Store and promote a candidate as `model train` does, slowly."""
    promote = registry.promote

    def slowly(session: Any, version: str) -> str | None:
        session.flush()
        say("promoting")
        sys.stdin.read()
        return promote(session, version)

    registry.promote = slowly
    candidate = Candidate((folder / "model.onnx").read_bytes(), json.loads((folder / "manifest.json").read_text()))
    serving = database.read(lambda session: registry.serving(session, KIND))
    candidates.keep(database, candidate, serving, datetime.now(UTC), serve=True)


def say(text: str) -> None:
    """Tell the test where this process is, as the training does."""
    print(f"model train: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    opened = Database.from_url(sys.argv[2])
    if sys.argv[1] == "nightly":
        nightly(opened)
    else:
        manage(opened, Path(sys.argv[3]))
