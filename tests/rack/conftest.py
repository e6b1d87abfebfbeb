"""The rack that the tests of this folder share: brought up once a session, in a short folder, on ports of its own.

What its services logged meanwhile is printed with a test that fails.

PONDSTACK_TEST_RACK=DIR uses the running rack of that folder instead, and leaves it running: for writing tests.
"""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from pondstack_rack import ports
from pondstack_rack.layout import PORTS, Sizes
from pondstack_rack.rack import Rack
from tests.fixtures import workers
from tests.rack.service_logs import told_since
from tests.robustness.mitigations.rack import Processes

RUNNING = "PONDSTACK_TEST_RACK"
HOSTS, FAKES, SLICES = 2, 4, 16
TEMPEST = pytest.StashKey[list[str]]()
RACK = pytest.StashKey[Rack]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give the report of a phase what Tempest told in it, and the logs of one that failed."""
    report = yield
    lines = item.stash.get(TEMPEST, [])
    workers.tell(report, "tempest", lines)
    lines.clear()
    shared = item.config.stash.get(RACK, None)
    if report.failed and shared is not None:
        logs = told_since(shared.layout.log, call.start)
        report.sections += [(f"log of {name}", "\n".join(told)) for name, told in logs]
    return report


@pytest.fixture
def tempest_told(request: pytest.FixtureRequest) -> list[str]:
    """Lines for the summary of the whole run: what Tempest told."""
    return request.node.stash.setdefault(TEMPEST, [])


@pytest.fixture(scope="session")
def rack(pytestconfig: pytest.Config) -> Iterator[Rack]:
    """A running rack, with TLS: two libvirt hosts, four fake computes, a pool of 16 slices."""
    for rack in _racks():
        pytestconfig.stash[RACK] = rack
        yield rack


def _racks() -> Iterator[Rack]:
    if os.environ.get(RUNNING):
        yield Rack.open(Path(os.environ[RUNNING]))
        return
    if os.geteuid() != 0:
        pytest.skip("the rack needs root")
    if shutil.which("libvirtd", path="/usr/sbin") is None:
        pytest.skip("the rack needs the packages of tools/packages.txt: run tools/setup.sh")
    folder = Path(tempfile.mkdtemp(prefix="rack-", dir="/tmp"))
    rack = Rack(folder, Sizes(HOSTS, FAKES, SLICES, ports.free_base(PORTS), tls=True))
    try:
        rack.up()
        yield rack
    finally:
        if os.environ.get("PONDSTACK_KEEP_RACK"):
            print(f"kept: {folder}")
        else:
            rack.down()


@pytest.fixture
def processes(rack: Rack) -> Iterator[Processes]:
    """The rack's processes as victims."""
    made = Processes(rack)
    yield made
    made.close()
