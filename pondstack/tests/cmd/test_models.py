"""pondstack-manage model as an operator meets it. tests/robustness/test_training.py kills its training."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from pondstack.cmd import manage
from pondstack.db.connection.engine import Database
from pondstack.db.store import registry
from pondstack.prediction import examples, sandbox, trainer
from tests.fixtures import lifetimes

ITEMS = lifetimes.generate(projects=12, weeks=6)
NOW = lifetimes.end(ITEMS).isoformat()


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
    assert (table["kind"], table["version"]) == ("um", second)
    assert len(table["projects"]) == 13
    assert run("rollback") == (0, f"{second} serves no more; {first} does\n")
    assert models(configuration) == {first: "running", second: "candidate"}


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
        monkeypatch.setattr(sandbox, "MIB", 64 * 1024)  # 64 MiB: less than the imports take
    code, text = run("train", "--from", file, "--now", NOW)
    assert (code, told in text) == (1, True), text
    assert models(configuration) == {}


def _too_long(wait):
    """Time-outs are over at once."""

    def hurried(self, timeout=None):
        return wait(self, timeout and 0.01)

    return hurried
