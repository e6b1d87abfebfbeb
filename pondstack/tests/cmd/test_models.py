"""pondstack-manage model as an operator meets it. tests/robustness/test_training.py kills its training."""

import json
import os
import subprocess
from types import SimpleNamespace

import pytest
from oslo_config import cfg
from sqlalchemy import update

from pondstack import bounded_process
from pondstack.cmd import manage, status
from pondstack.controller.service import register_opts
from pondstack.db.connection.engine import Database
from pondstack.db.models import ModelRow
from pondstack.db.store import registry
from pondstack.domain.errors import Unavailable
from pondstack.prediction import examples, sandbox, trainer
from tests.fixtures import lifetimes
from tests.fixtures import samples as sample_file

ITEMS = lifetimes.generate(projects=12, weeks=6)
NOW = lifetimes.end(ITEMS).isoformat()


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Beside other tests a child of the least priority waits for all of them: minutes, where it needs seconds."""
    monkeypatch.setattr(bounded_process, "NICENESS", 0)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return lifetimes.write(tmp_path_factory.mktemp("lifetimes") / "lifetimes.jsonl", ITEMS)


@pytest.fixture
def configuration(tmp_path):
    path = tmp_path / "pondstack.conf"
    path.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/ledger.db\n")
    assert manage.run(["--config-file", str(path), "db", "sync"]) == 0
    return path


@pytest.fixture
def run(configuration, capsys):
    def words(*arguments):
        capsys.readouterr()
        code = manage.run(["--config-file", str(configuration), "model", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return words


def models(configuration):
    database = Database.from_url(f"sqlite:///{configuration.parent}/ledger.db")
    try:
        return {item.version: item.state for item in database.read(registry.models)}
    finally:
        database.dispose()


@pytest.fixture
def twin(monkeypatch):
    """Have the next training done in this process, which saves the seconds of a child's start and imports."""

    def train(items, settings, running, now, _limits, min_coverage, _started):
        data = examples.read(SimpleNamespace(lifetimes=lambda *_: list(items)), lifetimes.BEGIN, now, min_coverage)
        return trainer.train(data, settings, trainer.Running.load(*running), now, lambda _text: None)

    return lambda: monkeypatch.setattr(sandbox, "train", train)


def test_a_model_lives(run, file, configuration, twin):
    """Trained and promoted, shown, not beaten by its twin, promoted by hand, rolled back."""
    assert run("list") == (0, "no models: the static share serves\n")
    assert "no model runs" in run("show")[1]
    code, text = run("train", "--from", file, "--now", NOW)
    assert code == 0
    assert "is promoted; on the newest data" in text
    ((first, state),) = models(configuration).items()
    assert state == "running"
    shown = run("show")[1]
    for wanted in (first, "UM", "OP", "<- chosen", "expected pool share", "mispredictions", "budget 2 %"):
        assert wanted in shown
    assert json.loads(run("show", first, "--json")[1])["kind"] == "um"
    later = lifetimes.end(ITEMS).replace(microsecond=0, second=59).isoformat()
    twin()
    code, text = run("train", "--from", file, "--now", later)
    assert code == 0
    assert "not promoted (not better than: running)" in text
    (second,) = models(configuration).keys() - {first}
    assert "in place of " + first in run("promote", second)[1]
    table = json.loads(run("table", "--from", file, "--now", NOW)[1])
    assert (table["kind"], table["untouched"]["version"]) == ("flow", second)
    assert len(table["untouched"]["projects"]) == 13
    assert table["sensitivity"] is None
    assert list(table["points"]) == ["0"]
    assert run("rollback") == (0, f"{second} serves no more; {first} does\n")
    assert models(configuration) == {first: "running", second: "candidate"}


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return sample_file.write(tmp_path_factory.mktemp("samples") / "samples.jsonl", 200, seed=5)


def test_a_model_of_latency_lives_beside_it(run, samples, configuration):
    """Of another kind: made-up samples only where they are wanted, its own curves, its own rollback."""
    train = ("train", "--kind", "li", "--samples", samples)
    assert "samples are synthetic" in run(*train)[1]
    code, text = run(*train, "--synthetic")
    assert (code, "200 workloads" in text or "workloads that it has not seen" in text) == (0, True), text
    ((first, state),) = models(configuration).items()
    assert first.startswith("li-")
    if state != "running":
        run("promote", first)
    shown = run("show", "--kind", "li")[1]
    for wanted in (first, "SYNTHETIC", "PDM   5 %: LI", "bound", "predicted slowdown up to", "budget 2 %", "forest"):
        assert wanted in shown
    assert "SYNTHETIC" in run("list")[1]
    assert json.loads(run("show", first, "--json")[1])["source"] == "synthetic"
    assert "no model runs: the static share" in run("show")[1]
    code, text = run(*train, "--synthetic", "--predictor", "analytic", "--no-promote")
    assert (code, "running LI" in text, "as --no-promote asks" in text or "not better" in text) == (0, True, True)
    assert "nothing to roll back" in run("rollback")[1]
    assert run("rollback", "--kind", "li") == (0, f"{first} serves no more; nothing does\n")
    assert "no instance counts as insensitive" in run("show", "--kind", "li")[1]


def test_a_model_of_latency_wants_its_own_data(run, file, samples, configuration):
    for words, told in (
        (("train", "--kind", "li"), "--kind li learns from --samples"),
        (("train", "--kind", "li", "--from", file), "--kind li learns from --samples"),
        (("train", "--samples", samples), "--samples is of --kind li"),
        (("train", "--kind", "li", "--samples", file), "line 1: 'sweep' is missing"),
    ):
        code, text = run(*words)
        assert (code, told in text) == (1, True), text
    assert models(configuration) == {}


@pytest.mark.parametrize("kind", ["um", "li"])
def test_a_stale_model_is_flagged(kind, run, configuration):
    database = Database.from_url(f"sqlite:///{configuration.parent}/ledger.db")
    manifest = {"kind": kind, "newest": {"candidate": {"gain": 1.0}}}

    def work(session):
        registry.add(session, "old", manifest, b"x")
        registry.promote(session, "old")
        session.execute(update(ModelRow).values(created_at=0.0))

    database.write(work)
    database.dispose()
    assert "STALE: made" in run("list")[1]
    conf = cfg.ConfigOpts()
    register_opts(conf)
    conf(["--config-file", str(configuration)], project="pondstack")
    found = status.check_model(conf)
    assert found.code == status.Code.WARNING
    assert "old" in found.detail
    assert kind in found.detail


def test_bad_input_is_told_and_changes_nothing(run, file, tmp_path, configuration):
    bad = tmp_path / "bad.jsonl"
    bad.write_text(file.read_text().splitlines()[0] + '\n{"instance_uuid": "x"}\n')
    for words, told in (
        (("train", "--from", bad, "--now", NOW), "line 2: created_at is missing"),
        (("train", "--from", tmp_path / "none"), "No such file"),
        (("train", "--from", file, "--now", "2026-01-09T00:00:00"), "too little history"),
        (("train", "--from", file), "no instance was observed"),
        (("table", "--from", file), "no model runs"),
        (("promote", "um-9"), "there is no model um-9"),
        (("show", "um-9"), "there is no model um-9"),
        (("rollback",), "nothing to roll back"),
    ):
        code, text = run(*words)
        assert (code, told in text) == (1, True), text
    assert models(configuration) == {}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("training_memory_mib = 1024", "training_memory_mib"),
        ("training_seconds = 10", "took more than 10 s"),
    ],
)
def test_limits_end_a_training(run, file, configuration, options, told, monkeypatch):
    configuration.write_text(configuration.read_text() + f"[model]\n{options}\n")
    if "seconds" in options:
        monkeypatch.setattr(subprocess.Popen, "wait", _too_long(subprocess.Popen.wait))
    else:
        monkeypatch.setattr(bounded_process, "MIB", 64 * 1024)  # 64 MiB: less than the imports take
    code, text = run("train", "--from", file, "--now", NOW)
    assert (code, told in text) == (1, True), text
    assert models(configuration) == {}


def test_a_training_gives_way_to_all_else(monkeypatch):
    monkeypatch.undo()
    priorities = []

    def look(child):
        priorities.append(os.getpriority(os.PRIO_PROCESS, child.pid))
        child.kill()

    settings, limits = trainer.Settings(4.0, 98.0, 15, 1024), sandbox.Limits(600, 4096)
    with pytest.raises(Unavailable, match="ended with -9"):
        sandbox.train(ITEMS, settings, None, lifetimes.end(ITEMS), limits, 0.5, look)
    assert priorities == [19]


def _too_long(wait):
    """Time-outs are over at once."""

    def hurried(self, timeout=None):
        return wait(self, timeout and 0.01)

    return hurried
