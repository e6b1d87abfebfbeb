"""The threads that measure: each look at its own interval, three at a time, away from what the agent is there for."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import futurist
from futurist import periodics
from oslo_config import cfg

from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.records import Records
from pondstack_agent.telemetry.access import AccessLook
from pondstack_agent.telemetry.balloon import Balloon, BalloonLook
from pondstack_agent.telemetry.counters import GENERAL, CountersLook, top_down
from pondstack_agent.telemetry.damon import Damon
from pondstack_agent.telemetry.memory import MemoryLook
from pondstack_agent.telemetry.outbox import Outbox
from pondstack_agent.telemetry.sender import TelemetrySender

_THREADS = 3
BALLOON_SECONDS = 60.0
"""How much older than a look's interval a balloon driver's word may be."""


class Telemetry:
    """All looks of one host, from [telemetry]. stop() does not wait: a look that is under way ends by itself."""

    def __init__(self, conf: cfg.ConfigOpts, controller: ControllerAPI) -> None:
        group = conf.telemetry
        self._stopping = threading.Event()
        outbox = Outbox(time.monotonic)
        looks: list[tuple[float, Callable[[], None]]] = [
            (group.batch_seconds, TelemetrySender(conf.host, controller, outbox).run),
            (group.memory_seconds, MemoryLook(outbox).run),
        ]
        if group.libvirt_uri:
            balloon = Balloon(group.libvirt_uri, group.memory_seconds + BALLOON_SECONDS)
            looks.append((group.memory_seconds, BalloonLook(outbox, balloon).run))
        if group.access_seconds:
            records = Records(Path(conf.agent.state_dir) / "damon")
            damon = Damon(records, group.access_window_seconds, self._stopping)
            scans = AccessLook(outbox, group.access_seconds, group.access_cpu_percent, damon)
            looks.append((group.access_seconds, scans.run))
        if group.counters_seconds:
            looks.append((group.counters_seconds, CountersLook(outbox, [GENERAL, top_down()]).run))
        tasks = [_task(seconds, run) for seconds, run in looks]
        self._worker: Any = periodics.PeriodicWorker(
            [(task, (), {}) for task in tasks], executor_factory=lambda: futurist.ThreadPoolExecutor(_THREADS)
        )

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._worker.start, name="telemetry", daemon=True).start()

    def stop(self) -> None:
        """Measure no more."""
        self._stopping.set()
        self._worker.stop()


def _task(seconds: float, run: Callable[[], None]) -> Any:
    @periodics.periodic(spacing=seconds, run_immediately=True)
    def task() -> None:
        run()

    return task
