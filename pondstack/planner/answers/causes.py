"""Why a policy saves what it saves: its shares by size of server, and what it would save were one thing otherwise."""

from collections.abc import Mapping, Sequence

import numpy as np

from pondstack.planner.answers.parts import GIB, Grid
from pondstack.planner.answers.pools import chosen
from pondstack.planner.cell import Base
from pondstack.planner.dram import seconds
from pondstack.planner.estimate import estimate
from pondstack.planner.figures import Counterfactual, SizeClass
from pondstack.planner.history import Array, History
from pondstack.planner.latency import latency_percent
from pondstack.planner.settings import VARIANTS, Settings
from pondstack.planner.sizing import sizes_of
from pondstack.planner.sweep import Record
from pondstack.planner.variants import AS_IT_IS


def counterfactuals(
    grid: Grid, cells: Mapping[str, Record], bases: Mapping[int, Base], settings: Settings
) -> tuple[Counterfactual, ...]:
    """Return the policy as it is, and each variant with the share of DRAM that is best for that one."""
    found = []
    for kind in grid.asked:
        without = [bases[seed].mib_per_socket for seed in settings.seeds]
        before: list[float] = []
        for variant, about in {AS_IT_IS: "as it is", **VARIANTS}.items():
            best = chosen(kind, cells, settings, variant)
            saved = [100 * (1 - cell.mib_per_socket / least) for cell, least in zip(best, without, strict=True)]
            before = before or saved
            gained = [one - other for one, other in zip(saved, before, strict=True)]
            share = estimate([cell.pool_share_percent for cell in best], settings)
            figures = estimate(saved, settings), estimate(gained, settings), share
            found.append(Counterfactual(*kind, about, *figures))
    return tuple(found)


def size_classes(grid: Grid, histories: Sequence[History], settings: Settings) -> tuple[SizeClass, ...]:
    """Return the classes of each policy, by powers of two, at the pool size that causes are looked for."""
    if not grid.asked:
        return ()
    latency = latency_percent(*grid.asked[0][1:], settings)
    memory = np.concatenate([history.memory_mib for history in histories])
    weight = memory * np.concatenate([seconds(history) for history in histories])
    size = np.exp2(np.ceil(np.log2(memory / GIB)))
    found = []
    for policy in settings.policies:
        pool = np.concatenate([sizes_of(policy, history, settings, latency).pool_mib for history in histories])
        found += [_class(policy, upper, size == upper, memory, weight, pool) for upper in np.unique(size)]
    return tuple(found)


def _class(policy: str, upper: float, mine: Array, memory: Array, weight: Array, pool: Array) -> SizeClass:
    share = pool[mine] / memory[mine]
    return SizeClass(
        policy=policy,
        up_to_gib=float(upper),
        servers_percent=100 * float(mine.mean()),
        memory_percent=100 * float(weight[mine].sum() / max(1.0, weight.sum())),
        wanted_percent=100 * float((share * weight[mine]).sum() / max(1.0, weight[mine].sum())),
        pooled_percent=100 * float((share > 0).mean()),
    )
