"""`pondstack-manage model list|show|train|promote|rollback|table`: the registry of prediction models."""

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from oslo_config import cfg

from pondstack.cmd import model_table, model_text
from pondstack.conf import model as options
from pondstack.conf import prediction as history
from pondstack.conf import sizing
from pondstack.controller.history import candidates
from pondstack.db.connection.engine import Database
from pondstack.db.read.history import SqlHistory
from pondstack.db.store import registry
from pondstack.db.store.registry import StoredModel
from pondstack.domain.errors import BadRequest, NotFound, Unavailable
from pondstack.domain.history import Lifetime, Selection
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction import examples, latency, runtime, samples
from pondstack.prediction.trainer import KIND, Candidate


class Recorded:
    """The history that the controllers keep."""

    def __init__(self, database: Database, conf: cfg.ConfigOpts) -> None:
        self._history = SqlHistory(database, conf.prediction.gap_seconds)
        self._min_coverage = conf.prediction.min_coverage

    def lifetimes(self, since: datetime, until: datetime) -> Iterable[Lifetime]:
        """Return the instances of that time."""
        chosen = Selection(since=since, until=until, min_coverage=self._min_coverage, marks=True)
        return self._history.lifetimes(chosen)


def add_commands(verbs: Any) -> None:
    """Add the verbs of `model` to the command line."""
    verbs.add_parser("list", help="all models, the newest first").set_defaults(function=list_)
    show = verbs.add_parser("show", help="a model's curve, chosen point and what it is expected to do")
    show.add_argument("version", nargs="?", help="default: the running one of the kind")
    _add_kind(show)
    show.add_argument("--json", action="store_true", help="the whole manifest")
    show.set_defaults(function=show_)
    train = verbs.add_parser("train", help="train a model; it is promoted if it is better than what runs")
    _add_source(train)
    train.add_argument("--no-promote", action="store_true", help="store it as a candidate only")
    train.set_defaults(function=train_)
    _add_kind(train)
    train.add_argument("--samples", type=Path, help="of kind li: the file that pondstack-sample wrote")
    train.add_argument(
        "--predictor",
        choices=latency.PREDICTORS,
        default=latency.FOREST,
        help="of kind li: a forest of all counters, one of four (light), or a weighed sum (default: %(default)s)",
    )
    train.add_argument(
        "--synthetic",
        action="store_true",
        help="learn from made-up labels, too: on a rack for trying out, never elsewhere",
    )
    promote = verbs.add_parser("promote", help="have a model serve, whatever its verdict was")
    promote.add_argument("version")
    promote.set_defaults(function=promote_)
    rollback = verbs.add_parser("rollback", help="have the model of that kind before serve again")
    _add_kind(rollback)
    rollback.set_defaults(function=rollback_)
    decisions = verbs.add_parser(
        "table", help="show what the serving models say of each project and size, and what Eq. 1 chose, as JSON"
    )
    _add_source(decisions)
    decisions.set_defaults(function=table_)


def _add_kind(parser: Any) -> None:
    parser.add_argument(
        "--kind",
        choices=(KIND, latency.KIND),
        default=KIND,
        help="um: untouched memory, li: latency sensitivity (default: %(default)s)",
    )


def _add_source(parser: Any) -> None:
    parser.add_argument(
        "--from", dest="file", type=Path, help="JSON lines, one lifetime each (default: what was recorded)"
    )
    parser.add_argument("--now", type=_moment, help="ISO 8601: what came later is not read (default: now)")
    parser.add_argument(
        "--slice-mib", type=int, default=DEFAULT_SLICE_MIB, help="size of the pool's slices (default: %(default)s)"
    )


def _moment(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def list_(conf: cfg.ConfigOpts) -> str:
    """Return all models, one a line."""
    options.register_opts(conf)
    return model_text.listed(_database(conf).read(registry.models), conf.model.max_age_days, datetime.now(UTC))


def show_(conf: cfg.ConfigOpts) -> str:
    """Return one model's figures."""
    database, version = _database(conf), conf.command.version
    if version is None:
        version = _running(database, conf.command.kind)
    record = database.read(lambda session: registry.find(session, version))
    if conf.command.json:
        return json.dumps({**record.manifest, "serving": record.serving}, indent=2)
    return "\n".join([model_text.shown(record), *model_text.served(record)])


def train_(conf: cfg.ConfigOpts) -> str:
    """Train in a process of its own, then store and promote in one transaction; returns what was done."""
    options.register_opts(conf)
    sizing.register_opts(conf)
    history.register_opts(conf)
    command, database = conf.command, _database(conf)
    now = command.now or datetime.now(UTC)
    serving = database.read(lambda session: registry.serving(session, command.kind))
    train = _latency if command.kind == latency.KIND else _untouched
    candidate = train(conf, database, serving, now)
    better = candidate.manifest["verdict"]["better"] and not command.no_promote
    print("model train: storing", file=sys.stderr, flush=True)
    version = candidates.keep(database, candidate, serving, now, serve=better)
    return model_text.trained(version, candidate.manifest, better)


def _untouched(conf: cfg.ConfigOpts, database: Database, serving: StoredModel | None, now: datetime) -> Candidate:
    if conf.command.samples is not None:
        raise BadRequest("--samples is of --kind li; a model of untouched memory learns --from lifetimes")
    lifetimes = examples.usable(
        _source(conf, database).lifetimes(now - timedelta(seconds=conf.model.window_seconds), now),
        synthetic=conf.command.synthetic,
    )
    return candidates.train(conf, lifetimes, serving, now, conf.command.slice_mib)


def _latency(conf: cfg.ConfigOpts, _database: Database, serving: StoredModel | None, now: datetime) -> Candidate:
    command = conf.command
    if command.samples is None or command.file is not None:
        raise BadRequest("--kind li learns from --samples FILE, which pondstack-sample writes, and from nothing else")
    found = samples.usable(samples.read(command.samples), synthetic=command.synthetic)
    if not found:
        raise BadRequest(f"{command.samples} has no sample: run pondstack-sample --output {command.samples}")
    return candidates.train_latency(conf, found, serving, now, command.predictor)


def promote_(conf: cfg.ConfigOpts) -> str:
    """Promote by the operator's word; returns what it takes the place of."""
    version, database = conf.command.version, _database(conf)
    former = database.write(lambda session: registry.promote(session, version))
    kind = database.read(lambda session: registry.find(session, version)).kind
    return f"{version} serves in place of {former or model_text.stand_in(kind)}"


def rollback_(conf: cfg.ConfigOpts) -> str:
    """Go back by one model; returns what serves."""
    kind = conf.command.kind
    left, back = _database(conf).write(lambda session: registry.rollback(session, kind))
    return f"{left} serves no more; {back or model_text.stand_in(kind)} does"


def table_(conf: cfg.ConfigOpts) -> str:
    """Return what the serving models say, and the points that Eq. 1 chooses, as it travels to schedulers."""
    for group in (history, options, sizing):
        group.register_opts(conf)
    if runtime.missing():
        raise Unavailable(f"{', '.join(runtime.missing())} is not installed: pip install 'pondstack[ml]'")
    database = _database(conf)
    made = model_table.made(conf, database, _source(conf, database), conf.command.now or datetime.now(UTC))
    return json.dumps(made, indent=2)


def _source(conf: cfg.ConfigOpts, database: Database) -> examples.LifetimeSource:
    return examples.LifetimeFile(conf.command.file) if conf.command.file else Recorded(database, conf)


def _running(database: Database, kind: str) -> str:
    serving = database.read(lambda session: registry.serving(session, kind))
    if serving is None:
        raise NotFound(f"no model runs: {model_text.without(kind)}; pondstack-manage model list shows the candidates")
    return serving.record.version


def _database(conf: cfg.ConfigOpts) -> Database:
    return Database.from_conf(conf)
