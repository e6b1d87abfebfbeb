"""Times of slices in a host: by the driver, and by the raw daxctl commands for the same thing."""

import subprocess
import time
from pathlib import Path

from pondstack.devices import pool_uuid
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl import CxlHostPool
from pondstack_agent.drivers.cxl.returns import Settings

MIB = 1024
ONLINE = """
daxctl create-device -r region0 -s 1G
name=$(cat /sys/bus/cxl/devices/region0/dax_region0/dax_region/create)
daxctl reconfigure-device --mode=system-ram --no-online $name
daxctl online-memory $name
"""
OFFLINE = """
name=$(cat /sys/bus/cxl/devices/region0/dax_region0/dax_region/create)
daxctl offline-memory $name
daxctl reconfigure-device --mode=devdax --force $name
daxctl disable-device $name
daxctl destroy-device --force $name
"""


class Times:
    """One slice of 1 GiB, online and offline, in turns by either."""

    def __init__(self, host: str, serial: str, table: str, state_dir: Path) -> None:
        state_dir.mkdir(parents=True, exist_ok=True)
        tables = [table] if table else []
        self._driver = CxlHostPool(
            host=host, state_dir=state_dir, pools={1: serial}, permission_tables=tables, settings=Settings()
        )
        self._host, self._pool = host, pool_uuid(serial)

    def driver(self, tag: str, index: int) -> tuple[float, float]:
        """Return the seconds of attach and detach of a slice that is granted."""
        extents = (Extent(index, 1),)
        grant = Grant(tag, f"guest-of-{tag}", self._host, self._pool, "pool0", {}, MIB, extents, 1)
        begun = time.perf_counter()
        self._driver.attach(grant)
        between = time.perf_counter()
        self._driver.detach(tag)
        return between - begun, time.perf_counter() - between

    def raw(self) -> tuple[float, float]:
        """Return the seconds of the daxctl commands, of any slice."""
        return _seconds(ONLINE), _seconds(OFFLINE)


def _seconds(script: str) -> float:
    begun = time.perf_counter()
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True)
    return time.perf_counter() - begun
