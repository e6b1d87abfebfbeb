"""Contracts on the verbs driver, run inside a host, over its own device: of transports, of tiers, and of RPC.

The calls' broker is a RabbitMQ of this machine. `make hardware-rdma` and the night run all of it; `make test` a part of
what RPC promises, and leaves out the transports' contract on a device whose accesses are late.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pondstack_rack.servers import LOOPBACK, RabbitMQServer
from rdma.tests.data_plane import builds
from rdma.tests.data_plane.tiers import PROGRAM
from tests.fixtures.marks import NIGHT

from .conftest import Hardware
from .figures import Figures
from .host import EmulatedHost
from .machine import OUTSIDE
from .qemu import ROOT
from .rdma_hosts import one_host

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1200)]
PYTEST = ["/opt/pondstack/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
CONTRACT = [f"rdma/tests/contract/{path.name}" for path in sorted((ROOT / "rdma/tests/contract").glob("test_*.py"))]
CALLS = "pondstack/tests/rpc/test_bus_contract.py"
CALLS_WITHOUT_BROKER = ("rdma/tests/rpc/test_rpc.py", "rdma/tests/rpc/test_attacks.py")
TIERS = "rdma/tests/data_plane/test_tiers.py"
QUICK_TIERS = "written_is_read"
QUICK_CALLS = "values_errors or in_time or listens_again or ping"
WHOLE = "PONDSTACK_RDMA_WHOLE"
ONE_TEST_SECONDS = 300


@pytest.fixture(scope="module")
def host(hardware: Hardware) -> Iterator[EmulatedHost]:
    """A host with an RDMA device."""
    with one_host(hardware, network=True) as host:
        yield host


def whole() -> bool:
    """Whether all promises are wanted."""
    return any(os.environ.get(name, "") not in {"", "0"} for name in (WHOLE, NIGHT))


def promises_held(host: EmulatedHost, tests: Sequence[str], broker: str = "", **environment: str) -> float:
    """Run tests inside the host, all of which must pass, without a skip; how many."""
    assert tests
    done = host.run(
        [*PYTEST, "--rootdir", "/opt/code", "--timeout", str(ONE_TEST_SECONDS), *tests],
        env={
            "PONDSTACK_TEST_VERBS": "1",
            "PONDSTACK_TEST_BROKER": broker,
            "PYTHONPATH": "/opt/code",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        | environment,
        cwd="/opt/code",
        timeout=1100,
    )
    print(done.stdout[-20_000:], done.stderr[-2000:])
    assert done.returncode == 0
    summary = done.stdout.strip().splitlines()[-1]
    assert "skipped" not in summary
    return float(summary.split()[0])


def test_the_contract_of_transports(host: EmulatedHost, figures: Figures) -> None:
    some = [] if whole() else ["-k", "not late_verbs"]
    figures.add("promises of the contract, verbs", promises_held(host, [*some, *CONTRACT]), "passed")


def test_the_contract_of_tiers(host: EmulatedHost, tmp_path: Path, figures: Figures) -> None:
    """Of the data plane, in a build without sanitizers, which the host has no libraries for."""
    built = builds.tiers(tmp_path, ("-O2",), builds.HOST_LIBRARIES)
    program = f"/root/{built.name}"
    host.put(program, built.read_bytes(), mode=0o755)
    held = promises_held(host, [*([] if whole() else ["-k", QUICK_TIERS]), TIERS], **{PROGRAM: program})
    figures.add("promises of tiers, verbs", held, "passed", "" if whole() else "(some of them)")


def test_the_contract_of_calls(host: EmulatedHost, rabbitmq: RabbitMQServer, figures: Figures) -> None:
    broker = rabbitmq.transport_url("emulated-host").replace(LOOPBACK, OUTSIDE)
    # The plugin has pytest know our package from where it is installed, not from the folder of these tests.
    words = ["-p", "pondstack.domain.errors", *([] if whole() else ["-k", QUICK_CALLS]), CALLS]
    passed = promises_held(host, words, broker)
    if whole():
        passed += promises_held(host, ["-k", "verbs", *CALLS_WITHOUT_BROKER])
    figures.add("promises of calls, verbs", passed, "passed", "" if whole() else "(some of them)")
