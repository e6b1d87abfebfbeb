"""Composes all answers to one trace: histories of all seeds, one sweep, and what follows from it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pondstack.planner import money, stranding
from pondstack.planner.answers import causes, pools, verdict
from pondstack.planner.answers.parts import Grid, base_part, cell_part, energy_part
from pondstack.planner.cell import Base
from pondstack.planner.energy.systems import HISTORIES, SYSTEMS
from pondstack.planner.energy.totals import energy_answers
from pondstack.planner.figures import Answers, Source
from pondstack.planner.history import History, Sampler, assumptions
from pondstack.planner.settings import Settings
from pondstack.planner.sweep import Results, digest_of, sweep
from pondstack.planner.trace import Trace

Progress = Callable[[int, int], None]
"""Is told how many of how many parts are done."""


def answer(
    trace: Trace,
    settings: Settings,
    *,
    jobs: int | None = 1,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Return all answers; parts that `cache` (a folder) has from an interrupted run are taken from there.

    `jobs`: processes at once; None: what joblib is configured for. Raises ValueError for a trace without servers, or a
    cloud that the settings cannot make.
    """
    sampler, results = Sampler(trace, settings), Results(cache, digest_of(trace, settings))
    histories = {seed: sampler.history(seed) for seed in settings.seeds}
    grid = Grid(settings, min(history.sockets for history in histories.values()))
    energies = [(seed, kind, system) for seed in settings.seeds for kind in HISTORIES for system in SYSTEMS]
    tasks = grid.tasks + grid.otherwise
    total = len(histories) + len(tasks) + len(energies)

    def run(parts: Sequence[tuple], done: int) -> dict:
        told = None if progress is None else lambda number: progress(done + number, total)
        return sweep(parts, results, jobs=jobs, progress=told)

    bases = run([base_part(seed, history, settings) for seed, history in histories.items()], 0)
    found = {
        seed: Base(history, bases[f"base-{seed}"]["limit"], bases[f"base-{seed}"]["mib_per_socket"])
        for seed, history in histories.items()
    }
    cells = run([cell_part(found[task.seed], task, settings) for task in tasks], len(bases))
    used = run(
        [energy_part(histories[seed], seed, kind, system, settings) for seed, kind, system in energies],
        total - len(energies),
    )
    dram, slowdown, offlining, failures = pools.answers(grid, cells, found, settings)
    worth = tuple(money.money(item, settings) for item in dram)
    moments = [stranding.Seen(**bases[f"base-{seed}"]["seen"]) for seed in settings.seeds]
    return Answers(
        source=_source(trace, settings, histories),
        settings=settings,
        seeds=settings.seeds,
        stranding=stranding.stranding(moments),
        dram=dram,
        size_classes=causes.size_classes(grid, list(histories.values()), settings),
        counterfactuals=causes.counterfactuals(grid, cells, found, settings),
        slowdown=slowdown,
        offlining=offlining,
        failures=failures,
        energy=energy_answers(used, settings),
        tiering=money.tiering(settings),
        money=worth,
        verdict=verdict.verdict(worth, dram, slowdown),
    )


def _source(trace: Trace, settings: Settings, histories: dict[int, History]) -> Source:
    return Source(
        name=trace.name,
        origin=trace.origin,
        synthetic=trace.origin == "synthetic",
        servers=trace.servers.height,
        dropped_rows=sum(item.rows for item in trace.dropped),
        seconds=int(trace.end_of_trace_seconds - trace.servers["start_seconds"][0]),
        sockets=tuple(histories[seed].sockets for seed in settings.seeds),
        assumed=assumptions(trace, settings),
    )
