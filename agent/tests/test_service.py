"""The agent over a message bus: in process on fake://, and as a real process on RabbitMQ, killed and restarted."""

import contextlib
import inspect
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest
import tenacity
from oslo_config import cfg
from oslo_messaging import _utils

from agent.tests.conftest import Rig
from pondstack.devices import pool_uuid
from pondstack.domain.errors import OperationMismatch, PondError, PoolShortage, StaleEpoch
from pondstack.domain.requests import AssignRequest
from pondstack.rpc import targets
from pondstack.rpc import transport as rpc
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.controller_api import TELEMETRY_VERSION
from pondstack.rpc.identity.identity import Role
from pondstack.rpc.transport import Bus
from pondstack.rpc.wire import Report, Sample, assign_request
from pondstack_agent.service import AgentService
from pondstack_rack.wait import wait_until
from tests.fixtures.fake_controller import FakeController
from tests.fixtures.identities import Identities

POOL = pool_uuid("agent-tests")
expected = oslo_messaging.expected_exceptions(PondError)


class ControllerEndpoint:
    """A FakeController on the wire."""

    target = oslo_messaging.Target(version=TELEMETRY_VERSION)

    def __init__(self, fake: FakeController) -> None:
        self.fake = fake
        self.heard = threading.Event()

    @expected
    def assign(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        return self.fake.assign(arguments.pop("operation_id"), assign_request(**arguments)).to_wire()

    @expected
    def acknowledge(self, _context: Any, **arguments: Any) -> None:
        self.fake.acknowledge(**arguments)

    @expected
    def release(self, _context: Any, **arguments: Any) -> None:
        self.fake.release(**arguments)

    @expected
    def heartbeat(self, _context: Any, report: dict[str, Any]) -> dict[str, Any]:
        answer = self.fake.heartbeat(Report.from_wire(report))
        self.heard.set()
        return answer

    @expected
    def telemetry(self, _context: Any, host: str, samples: list[dict[str, Any]]) -> None:
        self.fake.telemetry(host=host, samples=[Sample.from_wire(item) for item in samples])


@contextmanager
def serving(
    conf: cfg.ConfigOpts, url: str, fake: FakeController, bus: Bus | None = None
) -> Iterator[tuple[Bus, ControllerEndpoint]]:
    """A controller on the bus; yields the bus for clients too."""
    transport = bus or rpc.get_transport(conf, Role.CONTROLLER, url)
    endpoint = ControllerEndpoint(fake)
    server = transport.server(targets.controller_target("fake"), [endpoint])
    server.start()
    try:
        yield transport, endpoint
    finally:
        server.stop()
        server.wait()
        transport.cleanup()


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that another thread or process does."""
    assert wait_until(condition, seconds, 0.05), "it did not happen in time"


def insist(call: Callable[[], Any]) -> Any:
    """Call again with the same operation id while there is no answer, as callers of the agent do."""
    retry = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(oslo_messaging.MessagingTimeout),
        stop=tenacity.stop_after_delay(60),
        reraise=True,
    )
    return retry(call)


def new_id() -> str:
    return str(uuid.uuid4())


def request(mib: int) -> AssignRequest:
    return AssignRequest(new_id(), "host1", POOL, pool_mib=mib, guest_mib=9)


@pytest.mark.parametrize("over", ["", "shm"])
def test_calls_and_errors_cross_the_bus(conf, device, tmp_path, over) -> None:
    """Over a bus, and over RDMA beside it."""
    url = "fake://"
    conf.set_override("transport", over, group="rpc")
    conf.set_override("shm_folder", str(tmp_path / "rpc"), group="rpc")
    conf.set_override("heartbeat_seconds", 0.2, group="agent")
    oslo_messaging.set_transport_defaults("openstack")
    with serving(conf, url, FakeController({"pool0": device})) as (transport, endpoint):
        conf.set_override("transport_url", url)
        service = AgentService(conf)
        service.start()
        try:
            assert endpoint.heard.wait(30)
            api = AgentAPI(transport, timeout_seconds=30)
            if over:
                eventually(lambda: api.report("host1", epoch=1) and transport.transport._driver.answered)
            before = transport.transport._driver.answered if over else 0
            operation_id, mine = new_id(), request(2)
            answer = api.attach(operation_id, mine)
            assert answer.pool_mib == 2
            assert not over or transport.transport._driver.answered == before + 1
            assert api.get_attachment("host1", consumer_uuid=mine.consumer_uuid) == answer
            assert [item.allocation_uuid for item in api.report("host1", epoch=1).attached] == [answer.allocation_uuid]
            with pytest.raises(OperationMismatch):
                api.attach(operation_id, replace(mine, pool_mib=1))
            with pytest.raises(PoolShortage, match="7 slices asked for, 6 free"):
                api.attach(new_id(), request(7))
            with pytest.raises(StaleEpoch):
                api.report("host1", epoch=0)
            gone = {"operation_id": new_id(), "consumer_uuid": mine.consumer_uuid}
            assert api.detach("host1", **gone) is True
            assert api.get_attachment("host1", consumer_uuid=mine.consumer_uuid) is None
            eventually(lambda: endpoint.fake.held == {})
        finally:
            service.stop()
        service.wait()


def test_what_is_measured_crosses_the_bus(conf, device) -> None:
    """Of a process that says that it is a guest of 64 MiB, and is none."""
    url, guest = "fake://", str(uuid.uuid4())
    for name in ("memory_seconds", "batch_seconds"):
        conf.set_override(name, 1, group="telemetry")
    oslo_messaging.set_transport_defaults("openstack")
    words = ["-c", "import sys; sys.stdin.read()", "-uuid", guest, "-m", "64"]
    with serving(conf, url, FakeController({"pool0": device})) as (_, endpoint):
        conf.set_override("transport_url", url)
        service = AgentService(conf)
        with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE) as process:
            service.start()
            try:
                wanted = {"memory_mib", "untouched_mib"}
                eventually(lambda: wanted <= {it.metric for it in endpoint.fake.samples if it.consumer_uuid == guest})
            finally:
                service.stop()
                process.kill()
        service.wait()
    samples = {item.metric: item for item in endpoint.fake.samples if item.consumer_uuid == guest}
    assert samples["memory_mib"].mean == 64
    assert samples["untouched_mib"].readings == 0
    assert samples["untouched_mib"].reason


class AgentProcess:
    """A real pondstack-agent."""

    def __init__(self, folder: Path, transport_url: str, device_path: Path) -> None:
        self.config = folder / "agent.conf"
        self.log = folder / "agent.log"
        self.config.write_text(
            f"[DEFAULT]\ntransport_url = {transport_url}\nhost = host1\nlog_file = {self.log}\n"
            f"[agent]\nuser =\nstate_dir = {folder / 'state'}\n"
            "heartbeat_seconds = 0.3\ncontroller_timeout_seconds = 20\n"
            f"[emulated]\ndevice_paths = {device_path}\n"
            "[oslo_messaging_rabbit]\nrabbit_quorum_queue = true\nrabbit_transient_quorum_queue = true\n"
            + Identities(folder / "credentials").section("agent/host1")
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.systemd.bind(str(folder / "notify"))

    def start(self) -> None:
        code = "import sys; from pondstack_agent.cmd import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "--config-file", str(self.config)]
        environment = {**os.environ, "NOTIFY_SOCKET": str(self.systemd.getsockname())}
        self.process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, env=environment)

    def told(self) -> list[bytes]:
        """Return what systemd was told since the last look."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.systemd.recv(512))
        return found

    def kill(self) -> None:
        """kill -9, of the worker and its parent."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)

    def terminate(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)


@pytest.mark.functional
def test_a_real_agent_killed_in_mid_attach_goes_on(tmp_path, device, rabbitmq) -> None:
    url = rabbitmq.transport_url("agent-service")
    fake = FakeController({"pool0": device})
    agent = AgentProcess(tmp_path, url, device.path)
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(agent.config)])
    with serving(conf, url, fake, Identities(tmp_path / "credentials").everybody(conf, url)) as (transport, endpoint):
        api = AgentAPI(transport, timeout_seconds=60, monitor_seconds=3)
        try:
            agent.start()
            assert endpoint.heard.wait(60), agent.log.read_text()
            assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
            eventually(lambda: agent.told() == [b"READY=1"])
            operation_id, mine = new_id(), request(3)
            # Killed when the controller has assigned and before the agent hears of it.
            fake.after["assign"] = [lambda **_: agent.kill()]
            with pytest.raises(oslo_messaging.MessagingTimeout):
                api.attach(operation_id, mine)
            [allocation] = fake.held
            agent.start()
            answer = insist(lambda: api.attach(operation_id, mine))
            assert answer.allocation_uuid == allocation
            assert fake.held == {allocation: "online"}
            # Killed and restarted: what is attached is reported, with higher sequence numbers.
            agent.kill()
            last = fake.reports[-1].sequence
            agent.start()

            def reported() -> bool:
                # A report of the former life may still be on its way, from before the attach.
                newest = fake.reports[-1]
                return newest.sequence > last + 1 and [i.allocation_uuid for i in newest.attached] == [allocation]

            eventually(reported)
            # The controller is silent when the guest goes; it hears of it afterwards.
            fake.before["release"] = [lambda **_: agent.kill()]
            gone = {"operation_id": new_id(), "consumer_uuid": mine.consumer_uuid}
            with contextlib.suppress(oslo_messaging.MessagingTimeout):  # whichever comes first, its answer or its end
                api.detach("host1", **gone)
            eventually(lambda: agent.process is not None and agent.process.poll() is not None)
            agent.start()
            assert insist(lambda: api.detach("host1", **gone)) is True
            eventually(lambda: fake.held == {})
            assert agent.terminate() == 0
            assert "Traceback" not in agent.log.read_text()
        finally:
            agent.kill()
            agent.systemd.close()


def verbs(endpoint: Any) -> list[str]:
    return [name for name, _ in inspect.getmembers(type(endpoint), inspect.isfunction) if not name.startswith("_")]


def test_each_verb_is_called_by_its_version(rig: Rig) -> None:
    """oslo.messaging calls the first endpoint that has the verb and whose version covers that of the call."""
    endpoints = rig.agent.endpoints
    for own in endpoints:
        for verb in verbs(own):
            called = next(
                other
                for other in endpoints
                if hasattr(other, verb) and _utils.version_is_compatible(other.target.version, own.target.version)
            )
            assert called is own, f"{verb} {own.target.version} reaches {type(called).__name__} {called.target.version}"
