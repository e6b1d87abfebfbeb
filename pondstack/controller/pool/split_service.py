"""Splits: what schedulers decide from, and what they tell that they placed instances with.

What is remembered is what nova-scheduler says that it placed an instance with. A scheduler decides by itself; one of
the former release asks, and gets the same decision from the same figures.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from oslo_config import cfg

from pondstack.controller.pool.returns import PoolClaims
from pondstack.controller.pool.split_board import SplitBoard
from pondstack.controller.workers import PeriodicWorker
from pondstack.db.connection.engine import Database
from pondstack.domain.allowance import Allowance
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.rack import RackView
from pondstack.domain.sizing import Split
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction.control import Control
from pondstack.prediction.former import describe_formerly
from pondstack.prediction.serving import (
    choose_split,
    controlled,
    features_from_wire,
    flavor_key,
    kept_split,
    make_predictor,
    version_of,
    within_budget,
)
from pondstack.rpc.wire import SplitAnswer, SplitView, UsedSplit

STOP_SECONDS = 5.0
"""How long stop() waits for a look at Placement under way; what it finds is written under its epoch or not at all."""


class Models(Protocol):
    """What decides `auto` splits."""

    def describe(self) -> Mapping[str, Any] | None:
        """Return the predictor in force, as pondstack.prediction.serving.make_predictor takes it; None: not yet."""

    def allowance(self) -> Allowance | None:
        """Return what the models may still risk, None while none serves."""

    def note(self, items: Iterable[RememberedSplit]) -> None:
        """Take off what instances were just placed with."""


class SplitService:
    """An `auto` VM keeps its split while its flavor stays; fixed and local ones follow their flavor."""

    def __init__(
        self,
        ledger: Ledger,
        board: SplitBoard,
        models: Models,
        refresh_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        control: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        """`control()`: the control group as SplitView.control has it."""
        self._control = control
        self._ledger = ledger
        self._board = board
        self._models = models
        self._clock = clock
        self._worker = PeriodicWorker("splits", refresh_seconds, board.refresh)

    def start(self) -> None:
        """Refresh the board from now on, in a thread."""
        self._worker.start()

    def stop(self) -> None:
        """End the thread."""
        self._worker.stop(STOP_SECONDS)

    def view(self, epoch: int, version: int, *, now: bool, predictor: str | None = None) -> SplitView:
        """Return what a scheduler decides from that knows the splits up to `version` of `epoch`.

        With `now`, as of this moment: Placement is asked. `predictor`: version of the one that it has, None: it is of
        the former release, which takes another one, whole. Raises Unavailable.
        """
        board = self._board
        if now:
            board.refresh_if_older(self._clock())
        rooms = board.rooms
        changes = board.catalog.since(version if epoch == self._ledger.epoch else 0)
        # After the splits: of what is among them, the budget knows.
        allowance = self._models.allowance()
        about, about_version = self._about(predictor, allowance, rooms.slice_mib)
        return SplitView(
            epoch=self._ledger.epoch,
            version=changes.version,
            full=changes.full,
            more=changes.more,
            slice_mib=rooms.slice_mib,
            predictor=about,
            rooms=rooms.pools,
            age_seconds=board.age_seconds(),
            pending=board.pending.by_consumer(),
            claimed=tuple(sorted(rooms.claimed)),
            splits=changes.items,
            predictor_version=about_version,
            model_budget=None if allowance is None else allowance.to_wire(),
            projects=board.projects,
            control=self._control(),
        )

    def _about(self, known: str | None, allowance: Allowance | None, slice_mib: int) -> tuple[dict[str, Any], str]:
        """Return the predictor and its version for a scheduler; {}: it keeps what it has."""
        if known and self._models.describe() is None:
            return {}, known  # what the former leader's models said is better than nothing
        about = self._described()
        version = version_of(about)
        if known is None:
            return (describe_formerly(about, allowance, slice_mib) if version else about), ""
        return ({} if version and version == known else about), version

    def _described(self) -> dict[str, Any]:
        found = self._models.describe()
        if found is None:
            raise Unavailable("this controller has just been elected and has asked no model yet; call again")
        return dict(found)

    def projects_changed(self) -> None:
        """Have the next views show what operators have set per project. Raises Unavailable."""
        self._board.read_projects()

    def corrected(self, instance_uuid: str) -> None:
        """Have the next views show that a mitigation marked an instance's split, or put it back."""
        self._board.reread([instance_uuid])

    def split(self, data: Mapping[str, Any]) -> SplitAnswer:
        """Return the split of a VM (Features as a dict). Raises BadRequest, BadSpec, NotAligned, PoolShortage."""
        features = features_from_wire(data)
        board, rooms, allowance = self._board, self._board.rooms, self._models.allowance()
        split = choose_split(
            features,
            kept=kept_split(features, board.catalog.get(features.instance_uuid)),
            predictor=controlled(within_budget(make_predictor(self._described()), allowance), self._control()),
            slice_mib=rooms.slice_mib,
            rooms=rooms.pools,
            pending_mib=board.pending.mib(besides=features.instance_uuid),
        )
        board.pending.add(features.instance_uuid, split.pool_mib, self._clock())
        return SplitAnswer(
            split.local_mib, split.pool_mib, split.source, split.confidence, split.reason, slice_mib=rooms.slice_mib
        )

    def record(self, used: Sequence[UsedSplit]) -> None:
        """Remember what instances were placed with, where nothing younger is remembered. Raises BadRequest."""
        items = [_rememberable(item) for item in used]
        self._ledger.remember_splits(items)
        self._models.note(items)
        self._board.recorded(items)


def make_splits(
    conf: cfg.ConfigOpts,
    database: Database,
    ledger: Ledger,
    view: Callable[[], RackView],
    claims: Callable[[RackView], PoolClaims],
    models: Models,
) -> SplitService:
    """Join the service of a leader, by [sizing], [controller] and [qos]."""
    board = SplitBoard(
        database, ledger, view, claims, conf.controller.agent_down_seconds, take_at_move=lambda: conf.qos.take_at_move
    )

    def control() -> dict[str, Any]:
        return Control(conf.qos.control_share_percent, conf.qos.control_seed).to_wire()

    return SplitService(ledger, board, models, conf.sizing.refresh_seconds, control=control)


def _rememberable(used: UsedSplit) -> RememberedSplit:
    features = features_from_wire(used.features)
    if used.local_mib < 0 or used.pool_mib < 0 or used.local_mib + used.pool_mib != features.memory_mib:
        raise BadRequest(
            f"{used.local_mib} and {used.pool_mib} MiB do not split the {features.memory_mib} MiB of instance "
            f"{features.instance_uuid}"
        )
    split = Split(
        used.local_mib, used.pool_mib, used.source, used.confidence, used.reason, used.model_version, dict(used.inputs)
    )
    return RememberedSplit(features.instance_uuid, flavor_key(features), split, max(0.0, used.age_seconds))
