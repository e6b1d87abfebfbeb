"""kill -9 of a training, or of who asked for it, at seeded moments: nothing is promoted, and what serves goes on.

Real processes and a real model. The seed is printed; PONDSTACK_SEED does the same again.
"""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import psutil
import pytest
from sqlalchemy import insert
from sqlalchemy.orm import Session

from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.models import InstanceRow, LabelRow, table
from pondstack.db.store import registry
from pondstack.domain.history import Lifetime
from pondstack.prediction import sandbox
from pondstack.prediction.features import FEATURES
from pondstack.prediction.runtime import OnnxModel
from pondstack.prediction.trainer import KIND, Candidate, Settings
from pondstack.prediction.untouched import NEVER
from pondstack_rack.wait import wait_until
from tests.fixtures import lifetimes
from tests.fixtures.seeds import by_night, seed

MOMENTS = ("begun", "reading", "fitting", "exporting", "judging", "writing")
"""What a training says it does; "begun" is said by nobody: the child has just been made."""
LONGEST = {"writing": 0.02}
OTHERS = 0.4
"""Seconds after such a moment within which the kill comes."""
SECONDS = 120.0
SERVES = "um-serves"
PAST = lifetimes.generate(projects=12, weeks=6)
SHIFT = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1) - lifetimes.end(PAST)
ITEMS = [
    replace(
        item,
        created_at=(item.created_at + SHIFT).replace(microsecond=0),
        deleted_at=(item.deleted_at + SHIFT).replace(microsecond=0),
    )
    for item in PAST
]


@dataclass(frozen=True, slots=True)
class Kill:
    """At which moment, and how many seconds later."""

    moment: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.moment} + {self.seconds:.3f} s"


class Training:
    """A process that has trainings, told line by line what it does."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-W", "ignore", *words]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stderr=pipe, stdout=subprocess.DEVNULL, text=True)
        self._lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        self.said: list[str] = []

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)

    def go(self) -> None:
        """Have the next night."""
        assert self.process.stdin is not None
        self.said.clear()
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def until(self, word: str) -> None:
        """Wait until it says this."""
        while not self.said or word not in self.said[-1]:
            self.said.append(self._lines.get(timeout=SECONDS))

    def reaches(self, kill: Kill) -> None:
        """Wait for the moment of a kill; what is said meanwhile makes it come earlier."""
        if kill.moment == "begun":
            assert wait_until(lambda: self.child() is not None, SECONDS, 0.002)
        else:
            self.until(f"model train: {kill.moment}")
        try:
            self.said.append(self._lines.get(timeout=kill.seconds))
        except Empty:
            return

    def child(self) -> psutil.Process | None:
        """Return the process that trains."""
        return next(iter(psutil.Process(self.process.pid).children()), None)

    def kill_child(self) -> bool:
        """Kill the process that trains; returns whether it was still at work."""
        child = self.child()
        try:
            if child is None or child.status() == psutil.STATUS_ZOMBIE:
                return False
            child.kill()
        except psutil.NoSuchProcess:
            return False
        return True

    def has_said(self, word: str) -> bool:
        """Return whether it ever said this; for one that has ended."""
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return any(word in line for line in self.said)

    def end(self) -> None:
        """End it, and wait until nobody is left who could say anything: the child, too."""
        self.process.kill()
        self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        assert not self._reader.is_alive(), "a training outlives its parent"


@pytest.fixture(scope="module")
def trained() -> Candidate:
    """A real model, trained once as a night does."""
    settings, limits = Settings(4.0, 98.0, 15, 1024), sandbox.Limits(600, 4096)
    return sandbox.train(ITEMS, settings, None, lifetimes.end(ITEMS), limits, 0.5)


@pytest.fixture
def url(tmp_path: Path, trained: Candidate) -> str:
    """A registry in which a model serves that gives nothing, so that any training beats it, and a history to learn."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    database = Database.from_url(url)
    migration.sync(database)

    def fill(session: Session) -> None:
        manifest = {**trained.manifest, "margins": {"known": NEVER, "cold": NEVER}}
        registry.add(session, SERVES, manifest, trained.blob)
        registry.promote(session, SERVES)
        session.execute(insert(table(InstanceRow)), [_instance(item) for item in ITEMS])
        session.execute(insert(table(LabelRow)), [_label(item) for item in ITEMS])

    database.write(fill)
    database.dispose()
    return url


def _instance(item: Lifetime) -> dict[str, object]:
    begun, ended = (int(moment.timestamp()) for moment in (item.created_at, item.deleted_at))
    names = ("instance_uuid", "project_id", "flavor_name", "memory_mib", "vcpus", "image_os", "zone", "name_key")
    times = {"created_at": begun, "sized_at": begun, "changed_at": ended, "deleted_at": ended}
    return {**{name: getattr(item, name) for name in names}, "image_uuid": "", **times}


def _label(item: Lifetime) -> dict[str, object]:
    begun, ended = (int(moment.timestamp()) for moment in (item.created_at, item.deleted_at))
    return {
        "instance_uuid": item.instance_uuid,
        "node": -1,
        "untouched_mib": item.untouched_mib,
        "first_at": begun,
        "observed_until": ended,
        "observed_seconds": ended - begun,
        "source": "measured",
    }


def serving(url: str) -> str:
    """Return what serves, and check that it can be used."""
    database = Database.from_url(url)
    try:
        found = database.read(lambda session: registry.serving(session, KIND))
        assert found is not None
        OnnxModel(found.blob, FEATURES)
        return found.record.version
    finally:
        database.dispose()


def kills(count: int, chance: random.Random) -> list[Kill]:
    """Return so many kills, at moments as different as possible."""
    moments = [moment for _ in range(count) for moment in chance.sample(MOMENTS, len(MOMENTS))][:count]
    return [Kill(moment, chance.uniform(0.0, LONGEST.get(moment, OTHERS))) for moment in moments]


def test_a_killed_child_promotes_nothing_and_the_leader_goes_on(url: str) -> None:
    chance = random.Random(f"child/{seed(7)}")
    leader = Training("-m", "tests.robustness.trainings", "nightly", url)
    hit = 0
    try:
        for kill in kills(by_night(18, 3), chance):
            print(f"kill -9 of the training: {kill}")
            before = serving(url)
            leader.go()
            leader.reaches(kill)
            killed = leader.kill_child()
            leader.until("model train: ended")
            hit += killed
            assert not killed or serving(url) == before
            assert leader.process.poll() is None
    finally:
        leader.end()
    assert hit > 0


@pytest.mark.parametrize("who", ["nightly", "manage"])
def test_a_killed_parent_promotes_nothing_and_takes_its_child_along(who: str, url: str, tmp_path: Path) -> None:
    chance = random.Random(f"{who}/{seed(7)}")
    conf = tmp_path / "pondstack.conf"
    conf.write_text(f"[database]\nconnection = {url}\n")
    manage = "import sys; from pondstack.cmd import manage; sys.exit(manage.main())"
    words = {
        "nightly": ("-m", "tests.robustness.trainings", "nightly", url),
        "manage": ("-c", manage, "--config-file", str(conf), "model", "train"),
    }
    for kill in kills(by_night(9, 1), chance):
        print(f"kill -9 of {who}: {kill}")
        before = serving(url)
        parent = Training(*words[who])
        try:
            if who == "nightly":
                parent.go()
            parent.reaches(kill)
        finally:
            parent.end()
        # One that had written its result when the kill came may have ended well: then it is promoted, and whole.
        assert serving(url) == before or parent.has_said("model train: writing")


def test_killed_between_store_and_promote_nothing_is_stored(url: str, tmp_path: Path, trained: Candidate) -> None:
    (tmp_path / "model.onnx").write_bytes(trained.blob)
    (tmp_path / "manifest.json").write_text(json.dumps(trained.manifest))
    parent = Training("-m", "tests.robustness.trainings", "manage", url, str(tmp_path))
    try:
        parent.until("model train: promoting")
    finally:
        parent.end()
    assert serving(url) == SERVES
    database = Database.from_url(url)
    assert [item.version for item in database.read(registry.models)] == [SERVES]
    database.dispose()


def test_a_training_that_nobody_kills_is_promoted(url: str) -> None:
    """So that the tests above may fail."""
    leader = Training("-m", "tests.robustness.trainings", "nightly", url)
    try:
        leader.go()
        leader.until("model train: ended")
    finally:
        leader.end()
    assert serving(url) != SERVES
