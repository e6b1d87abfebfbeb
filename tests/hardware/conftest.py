"""What the tests of emulated hosts share: image and code are made once a session, hosts as each test wants them."""

import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.fixtures import workers

from . import code_disk
from .figures import Figures
from .host import EmulatedHost
from .machine import Machine
from .qemu import Files

FIGURES = pytest.StashKey[Figures]()
KEPT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """One list of figures and one of kept logs, emptied into each report."""
    config.stash[FIGURES] = Figures()
    config.stash[KEPT] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give each report the figures and the kept logs that its phase added."""
    report = yield
    figures, kept = item.config.stash[FIGURES], item.config.stash[KEPT]
    workers.tell(report, "figure", [figure.line() for figure in figures])
    workers.tell(report, "log", kept)
    figures.clear()
    kept.clear()
    return report


class Hardware:
    """Makes hosts; those of one `with` boot side by side."""

    def __init__(self, files: Files, code: Path, request: pytest.FixtureRequest) -> None:
        self.files, self.code, self._request = files, code, request

    @contextmanager
    def hosts(self, *machines: Machine) -> Iterator[Sequence[EmulatedHost]]:
        """Boot hosts; afterwards switch them off, and keep their logs when a test failed meanwhile."""
        session = self._request.session
        failed_before, failed = session.testsfailed, True

        def close(host: EmulatedHost) -> None:
            host.close(failed=failed or session.testsfailed > failed_before)
            if host.folder.exists():
                self._request.config.stash[KEPT].append(f"{host.machine.name}: {host.folder}")

        with ExitStack() as stack:
            made = [EmulatedHost(machine, self.files, self.code) for machine in machines]
            for host in made:
                stack.callback(close, host)
            with ThreadPoolExecutor(len(made)) as pool:
                list(pool.map(EmulatedHost.power_on, made))
            yield made
            failed = False


@pytest.fixture(scope="session")
def hardware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hardware:
    """The maker of hosts; builds what they are made of."""
    if os.geteuid() != 0:
        pytest.skip("building emulated hosts needs root")
    if shutil.which("mmdebstrap") is None:
        pytest.skip("emulated hosts need the packages of tools/packages.txt: run tools/setup.sh")
    files = Files.built()
    return Hardware(files, code_disk.build(files, tmp_path_factory.mktemp("code")), request)


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> Figures:
    """Where a test records what it measured."""
    return request.config.stash[FIGURES]
