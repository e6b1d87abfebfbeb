"""The contract of rdma/tests/test_contract_*.py on the verbs driver: run inside a host, over its own device."""

from collections.abc import Iterator

import pytest

from .conftest import Hardware
from .figures import Figures
from .host import EmulatedHost
from .qemu import ROOT
from .rdma_hosts import one_host

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1200)]
PYTEST = ["/opt/pondstack/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
CONTRACT = [f"rdma/tests/{path.name}" for path in sorted((ROOT / "rdma/tests").glob("test_contract_*.py"))]
ONE_TEST_SECONDS = 300


@pytest.fixture(scope="module")
def host(hardware: Hardware) -> Iterator[EmulatedHost]:
    """A host with an RDMA device."""
    with one_host(hardware) as host:
        yield host


def test_the_contract_of_transports(host: EmulatedHost, figures: Figures) -> None:
    done = host.run(
        [*PYTEST, "--rootdir", "/opt/code", "--timeout", str(ONE_TEST_SECONDS), *CONTRACT],
        env={"PONDSTACK_TEST_VERBS": "1", "PYTHONPATH": "/opt/code", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/opt/code",
        timeout=1100,
    )
    print(done.stdout[-20_000:], done.stderr[-2000:])
    assert done.returncode == 0
    summary = done.stdout.strip().splitlines()[-1]
    figures.add("promises of the contract, verbs", float(summary.split()[0]), "passed")
    assert "skipped" not in summary
