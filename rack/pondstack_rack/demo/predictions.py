"""Shows on the running rack that predictions place VMs: by a project's history, and better after a misprediction.

The QoS monitor takes the mispredicted VM out of its pool memory, by a live migration: the rack's pool is a file. Fake
computes play traces that this writes, so every figure of memory is SYNTHETIC; Nova, its scheduler, the
controllers, their history, the model and the monitor are real. What is made here is removed at the end.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack import config
from pondstack_rack.demo import past
from pondstack_rack.demo.tenancy import MEMORY_MIB, Tenancy
from pondstack_rack.layout import Layout, RackError, program
from pondstack_rack.processes import environment
from pondstack_rack.wait import Deadline

Say = Callable[[str], None]
Play = Callable[[Mapping[str, float]], None]
"""Has servers, by their UUIDs or projects, leave a percentage untouched."""

Training = Future[tuple[str, bool]]
"""The model that will serve, and whether it will because it was trained here."""

PAST = 3
"""Instances that a project's history begins with."""
SPARING, GREEDY = 92, 30
"""Percent of its memory that an instance leaves untouched: those of the past, and one that is another."""
TRAINING_SECONDS = 300.0
LEARNT_SECONDS = 120.0
HISTORY_REASON = "instances of its project"


@dataclass(frozen=True, slots=True)
class Placed:
    """One VM: what was decided for it and why, and what its made-up trace left untouched."""

    what: str
    server: str
    pool_mib: int
    source: str
    reason: str
    untouched_mib: int

    @property
    def over_predicted(self) -> bool:
        """Whether it touched pool memory that was said to stay untouched."""
        return self.pool_mib > self.untouched_mib


@dataclass(frozen=True, slots=True)
class Corrected:
    """A VM that was taken out of its pool memory: how that ended, by whose wish and how, and what it claims then."""

    state: str
    trigger: str
    method: str
    reason: str
    local_mib: int
    pool_mib: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was shown: VMs by what they are."""

    model: str
    past: Sequence[Placed]
    without: Placed
    """Of a project without any history."""
    known: Placed
    """The next one of the project with history, which touches far more than predicted."""
    after: Placed
    """The next one after that, which does the same."""
    corrected: Corrected
    """What became of the mispredicted one."""


def run(layout: Layout, say: Say) -> Outcome:
    """Train, have VMs live and end, and look at what is decided for the next ones. Raises RackError."""
    if not layout.fake_hosts:
        raise RackError("the traces are played by fake computes, and this rack has none: make rack FAKES=4")
    say("all of this is SYNTHETIC: the past that the model learns from, and what VMs of fake computes touch")
    tag = uuid4().hex[:6]
    with (
        Tenancy(layout, f"sparing-{tag}") as sparing,
        Tenancy(layout, f"new-{tag}") as new,
        traces(layout) as play,
        ThreadPoolExecutor(1, "training") as pool,
    ):
        play({project.project_id: SPARING for project in (sparing, new)})
        with _serving(pool.submit(_train, layout, say), layout, say) as training:
            lived = _past(sparing, say)
            version, _ = training.result()
            return _show(sparing, new, play, version, lived, say)


def check(outcome: Outcome) -> list[str]:
    """Return what is not as it should be; nothing when all is well."""
    known, without, after = outcome.known, outcome.without, outcome.after
    wrong = []
    if not (known.pool_mib > without.pool_mib and HISTORY_REASON in known.reason):
        wrong.append(f"history gave {known.pool_mib} MiB ({known.reason}), none {without.pool_mib} ({without.reason})")
    if HISTORY_REASON in without.reason:
        wrong.append(f"a project without history has one: {without.reason}")
    if without.over_predicted or any(item.over_predicted for item in outcome.past):
        wrong.append("a VM that kept to its habit was over-predicted")
    if not known.over_predicted:
        wrong.append(f"{known.pool_mib} MiB were no misprediction: {known.untouched_mib} stayed untouched")
    if (done := outcome.corrected) != Corrected("done", "monitor", "migrate", done.reason, MEMORY_MIB, 0):
        wrong.append(f"the mispredicted one was not taken out of its pool memory: {done}")
    if not (after.pool_mib < known.pool_mib and not after.over_predicted and HISTORY_REASON in after.reason):
        wrong.append(f"after it {after.pool_mib} MiB ({after.reason}); {after.untouched_mib} stayed untouched")
    return wrong


def _past(sparing: Tenancy, say: Say) -> list[Placed]:
    say(f"{PAST} VMs of the project {sparing.name} live, leave {SPARING} % untouched, and end")
    servers = sparing.boot(PAST)
    lived = [_placed(sparing, "lived and ended", server, SPARING) for server in servers]
    sparing.end(servers)
    return lived


def _show(sparing: Tenancy, new: Tenancy, play: Play, version: str, lived: list[Placed], say: Say) -> Outcome:
    say("the next VMs of a project with history, and of one without")
    next_one = _next(sparing, lambda _pool_mib, reason: HISTORY_REASON in reason)
    (other,) = new.boot(1)
    without = _placed(new, "its project has no history", other, SPARING)
    say(f"the one with history touches {100 - GREEDY} %, far more than predicted")
    play({sparing.project_id: SPARING, new.project_id: SPARING, next_one: GREEDY})
    known = _placed(sparing, "its project has one; mispredicted", next_one, GREEDY)
    say("the monitor sees that, and has it moved to local memory")
    corrected = _corrected(sparing, next_one)
    new.end([other])
    play({sparing.project_id: GREEDY, new.project_id: SPARING})
    next_one = _next(sparing, lambda pool_mib, reason: HISTORY_REASON in reason and pool_mib < known.pool_mib)
    return Outcome(version, lived, without, known, _placed(sparing, "the next after it", next_one, GREEDY), corrected)


def _corrected(project: Tenancy, server: str) -> Corrected:
    done = project.mitigation(server)
    local, pool = (project.claimed_mib(server, resource) for resource in ("MEMORY_MB", RESOURCE_CLASS))
    return Corrected(done["state"], done["trigger"], done["method"], done["reason"], local, pool)


def _next(project: Tenancy, wanted: Callable[[int, str], bool]) -> str:
    """Boot VMs one after the other until the scheduler has heard (some seconds); returns the server of that one."""
    deadline = Deadline(LEARNT_SECONDS)
    while True:
        (server,) = project.boot(1)
        split = project.split(server)
        if wanted(split["pool_mib"], split["reason"]):
            return server
        if deadline.over:
            raise RackError(f"after {LEARNT_SECONDS:.0f} s still {split['pool_mib']} MiB: {split['reason']}")
        project.end([server])


def _placed(project: Tenancy, what: str, server: str, percent: float) -> Placed:
    """Return what was decided, once it is known what the VM leaves untouched; one without pool memory has no trace."""
    split = project.split(server)
    expected = int(MEMORY_MIB * percent / 100)
    untouched = project.untouched_mib(server, expected) if split["pool_mib"] else expected
    return Placed(what, server, split["pool_mib"], split["source"], split["reason"], untouched)


@contextmanager
def traces(layout: Layout) -> Iterator[Play]:
    """Give what writes the file of traces: by project or server the percentage that stays untouched."""

    def play(percents: Mapping[str, float]) -> None:
        text = json.dumps({name: [[0, 100], [1, percent]] for name, percent in percents.items()})
        new = config.write(layout.traces.with_suffix(".new"), text)
        new.replace(layout.traces)

    try:
        yield play
    finally:
        layout.traces.unlink(missing_ok=True)


@contextmanager
def _serving(training: Training, layout: Layout, say: Say) -> Iterator[Training]:
    """Have what is trained serve no longer than this; what served before goes on."""
    try:
        yield training
    finally:
        if training.exception() is None and training.result()[1]:
            say(_manage(layout, "rollback"))


def _train(layout: Layout, say: Say) -> tuple[str, bool]:
    """Return the model that serves, and whether it does since now; one that was kept of an earlier run is as good."""
    say("a model is trained on the made-up past (pondstack-manage model train --synthetic)")
    file = past.write(layout.root / "made-up-past.jsonl", datetime.now(UTC))
    told = _manage(layout, "train", "--synthetic", "--from", str(file))
    say(told)
    version, _, what = told.partition(" ")
    if what.startswith("is promoted"):
        return version, True
    serving = [line.split() for line in _manage(layout, "list").splitlines() if " running " in line]
    if not serving:
        raise RackError("no model was promoted; pondstack-manage model show tells why")
    return serving[0][0], False


def _manage(layout: Layout, *words: str) -> str:
    command = [program("pondstack-manage"), "--config-file", str(layout.etc / "pondstack.conf"), "model", *words]
    done = subprocess.run(
        command,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TRAINING_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RackError(f"model {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout.strip()
