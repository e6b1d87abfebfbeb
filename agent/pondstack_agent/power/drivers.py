"""The power drivers of a host by their names, as it is configured."""

import os
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from pondstack.domain.errors import Unavailable
from pondstack_agent.lending.program import LENDER
from pondstack_agent.power.base import PowerDriver
from pondstack_agent.power.frozen import Frozen
from pondstack_agent.power.kernel_sleep import s3, sz
from pondstack_agent.power.low_power import LowPowerS0
from pondstack_agent.power.power_off import PowerOff

LOG = log.getLogger(__name__)


def load_power_drivers(conf: cfg.ConfigOpts, folder: Path) -> Mapping[str, PowerDriver]:
    """Return all drivers; whether one works here is its own word. `folder`: the waker's."""
    group, sys = conf.power, Path(conf.power.sys_folder)
    lender = Path(conf.agent.state_dir) / "lender"
    drivers: list[PowerDriver] = [
        sz(sys),
        LowPowerS0(sys, Path(group.cgroup_folder), folder / "low-power.json", lambda: serving(lender)),
        s3(sys),
        PowerOff(shlex.split(group.off_command)),
        Frozen(group.frozen_commands),
    ]
    return {driver.mode.name: driver for driver in drivers}


def serving(lender: Path) -> Collection[int]:
    """Return the processes that go on while a host sleeps: this one, and the lender's, if it lends."""
    try:
        return {os.getpid(), LENDER.pid(lender)} if LENDER.runs(lender) else {os.getpid()}
    except OSError as error:
        raise Unavailable(f"it cannot be told which process lends this host's memory: {error}") from error
