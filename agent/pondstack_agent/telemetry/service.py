"""The threads that measure: each look at its own interval, three at a time, away from what the agent is there for."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import futurist
from futurist import periodics
from oslo_config import cfg

from pondstack.conf.agent import LIBVIRT, SYNTHETIC
from pondstack.domain.telemetry import Source
from pondstack.rpc.controller_api import ControllerAPI
from pondstack_agent.records import Records
from pondstack_agent.telemetry.access import AccessLook
from pondstack_agent.telemetry.balloon import Balloon, BalloonLook
from pondstack_agent.telemetry.counters import CountersLook
from pondstack_agent.telemetry.damon import Damon
from pondstack_agent.telemetry.libvirt_guests import libvirt_guests
from pondstack_agent.telemetry.load import GuestLoadLook, HostLoadLook, PagerLook, Views, as_it_is
from pondstack_agent.telemetry.memory import MemoryLook, Served, running_guests, unserved
from pondstack_agent.telemetry.outbox import HostOutbox, Outbox
from pondstack_agent.telemetry.processors import event_sets, processor
from pondstack_agent.telemetry.sender import TelemetrySender
from pondstack_agent.telemetry.synthetic import PlayedGuests, SyntheticLoadLook, SyntheticLook
from pondstack_agent.telemetry.traces import HostTraceFile, TraceFile

_THREADS = 3
BALLOON_SECONDS = 60.0
"""How much older than a look's interval a balloon driver's word may be."""

Look = tuple[float, Callable[[], None]]
"""How often, in seconds, and what to do."""


class Telemetry:
    """All looks of one host, from [telemetry]. stop() does not wait: a look that is under way ends by itself."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        controller: ControllerAPI,
        played: PlayedGuests = list,
        served: Served = unserved,
        views: Views = list,
    ) -> None:
        """`played`: the guests whose traces are played where [telemetry] guests is synthetic.

        `served`: what the data plane tells of guests of which it has evicted a part; `views`: what all consumers of
        remote memory have.
        """
        self._served, self._views = served, views
        group = conf.telemetry
        self._stopping = threading.Event()
        synthetic = group.guests == SYNTHETIC
        source = Source.SYNTHETIC if synthetic else Source.MEASURED
        outbox, own = Outbox(time.monotonic, source), HostOutbox(time.monotonic, source)
        load = HostTraceFile(Path(group.host_trace_file), conf.host).load_percent if group.host_trace_file else as_it_is
        most: int = conf.lending.most_mib
        if synthetic:
            looks: list[Look] = [
                (group.memory_seconds, _synthetic(group.trace_file, outbox, played).run),
                (min(group.load_seconds, group.memory_seconds), SyntheticLoadLook(outbox, own, played, load, most).run),
            ]
        else:
            looks = self._looks(conf, outbox)
            looks.append((group.load_seconds, HostLoadLook(own, played=load, most_lent_mib=most).run))
        looks.append((group.batch_seconds, TelemetrySender(conf.host, controller, outbox, own).run))
        tasks = [_task(seconds, run) for seconds, run in looks]
        self._worker: Any = periodics.PeriodicWorker(
            [(task, (), {}) for task in tasks], executor_factory=lambda: futurist.ThreadPoolExecutor(_THREADS)
        )

    def _looks(self, conf: cfg.ConfigOpts, outbox: Outbox) -> list[Look]:
        group = conf.telemetry
        running = libvirt_guests(Path(group.libvirt_pid_dir)) if group.guests == LIBVIRT else running_guests
        looks: list[Look] = [(group.memory_seconds, MemoryLook(outbox, running, served=self._served).run)]
        looks.append((group.load_seconds, GuestLoadLook(outbox, running, time.monotonic).run))
        looks.append((group.load_seconds, PagerLook(outbox, self._views).run))
        if group.libvirt_uri:
            balloon = Balloon(group.libvirt_uri, group.memory_seconds + BALLOON_SECONDS)
            looks.append((group.memory_seconds, BalloonLook(outbox, balloon, running).run))
        if group.access_seconds:
            records = Records(Path(conf.agent.state_dir) / "damon")
            damon = Damon(records, group.access_window_seconds, self._stopping)
            scans = AccessLook(outbox, group.access_seconds, group.access_cpu_percent, damon, running=running)
            looks.append((group.access_seconds, scans.run))
        if group.counters_seconds:
            counters = CountersLook(outbox, event_sets(processor()), running=running)
            looks.append((group.counters_seconds, counters.run))
        return looks

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._worker.start, name="telemetry", daemon=True).start()

    def stop(self) -> None:
        """Measure no more."""
        self._stopping.set()
        self._worker.stop()


def _synthetic(trace_file: str, outbox: Outbox, played: PlayedGuests) -> SyntheticLook:
    if not trace_file:
        return SyntheticLook(outbox, played)
    return SyntheticLook(outbox, played, TraceFile(Path(trace_file)).untouched_mib)


def _task(seconds: float, run: Callable[[], None]) -> Any:
    @periodics.periodic(spacing=seconds, run_immediately=True)
    def task() -> None:
        run()

    return task
