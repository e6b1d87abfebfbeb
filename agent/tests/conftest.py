"""An emulated device of eight slices of 1 MiB, grants of it, and an agent in one process over a fake controller."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack.devices import pool_uuid
from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Attachment, Grant
from pondstack_agent.build import Agent, build_agent
from pondstack_agent.drivers.emulated import EmulatedHostPool
from rdma.tests.data_plane import builds
from tests.fixtures.fake_controller import FakeController
from tests.fixtures.rpc_call import call

GrantMaker = Callable[..., Grant]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The data plane with sanitizers, and the stand-in guest."""
    return builds.programs(tmp_path_factory)


@pytest.fixture
def device(tmp_path: Path) -> EmulatedDevice:
    """The device, as the controller sees it."""
    return create_device(tmp_path / "device", 8, slice_mib=1, serial="agent-tests")


@pytest.fixture
def make_grant(device: EmulatedDevice) -> GrantMaker:
    """Grant slices of the device to a host, as the controller does."""

    def make(*extents: Extent, host: str = "host1", consumer: str = "", permit: bool = True) -> Grant:
        allocation, info = str(uuid.uuid4()), device.info()
        if permit:
            device.grant(host, extents, tag=allocation, epoch=1)
        return Grant(
            allocation_uuid=allocation,
            consumer_uuid=consumer or str(uuid.uuid4()),
            host=host,
            pool_uuid=pool_uuid(info.serial),
            pool_name="pool0",
            device=dict(info.address),
            slice_mib=info.slice_mib,
            extents=extents,
            epoch=1,
        )

    return make


@pytest.fixture
def driver(tmp_path: Path, device: EmulatedDevice) -> EmulatedHostPool:
    """The host driver of host1 over the agent's state folder."""
    return EmulatedHostPool(host="host1", state_dir=tmp_path / "state", device_paths=[str(device.path)])


@pytest.fixture
def conf(tmp_path: Path, device: EmulatedDevice) -> cfg.ConfigOpts:
    """The configuration of the agent of host1."""
    made = cfg.ConfigOpts()
    agent_conf.register_opts(made)
    made([], default_config_files=[])
    made.set_override("host", "host1")
    made.set_override("state_dir", str(tmp_path / "state"), group="agent")
    made.set_override("device_paths", [str(device.path)], group="emulated")
    return made


@dataclass
class Later:
    """An executor that runs nothing until it is told, in the caller's thread."""

    waiting: list[tuple[Callable[..., Any], tuple[Any, ...]]] = field(default_factory=list)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> None:
        """Keep it for run()."""
        self.waiting.append((function, args))

    def run(self) -> None:
        """Run all that waits."""
        while self.waiting:
            function, args = self.waiting.pop(0)
            function(*args)


@dataclass
class Rig:
    """An agent over a fake controller, a clock that tests move, and the agent's restart."""

    conf: cfg.ConfigOpts
    controller: FakeController
    pool: str
    now: float = 1000.0
    later: Later = field(default_factory=Later)
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget all that is not on disk, as kill -9 does, and start again."""
        self.later = Later()
        self.agent = build_agent(self.conf, self.controller, self.later, clock=lambda: self.now)
        self.agent.housekeeper.recover()

    def attach(self, operation: str, consumer: str = "vm1", mib: int = 2, **more: Any) -> Attachment:
        """Call attach as the virt driver does."""
        request = {"pool_uuid": self.pool, "pool_mib": mib, "guest_mib": 16, **more}
        answer = call(self.agent.endpoint.attach, operation_id=operation, consumer_uuid=consumer, **request)
        return Attachment.from_wire(answer)

    def attachment(self, consumer: str = "vm1") -> Attachment | None:
        """Return what a consumer holds, as the virt driver asks for it."""
        found = call(self.agent.endpoint.get_attachment, consumer_uuid=consumer)
        return Attachment.from_wire(found) if found else None

    def detach(self, operation: str, consumer: str = "vm1") -> bool:
        """Call detach as the virt driver does."""
        return call(self.agent.endpoint.detach, operation_id=operation, consumer_uuid=consumer)

    def beat(self) -> bool:
        """One turn of the heartbeat's thread, and what waits in the background."""
        self.later.run()
        answered = self.agent.reporter.heartbeat()
        self.agent.housekeeper.tidy(60.0, 3600.0)
        self.later.run()
        return answered

    def attached(self) -> set[str]:
        """Allocations that are really attached."""
        return {item.allocation_uuid for item in self.agent.reporter.report().attached}


@pytest.fixture
def rig(conf: cfg.ConfigOpts, device: EmulatedDevice) -> Rig:
    """The agent of host1."""
    return Rig(conf, FakeController({"pool0": device}), pool_uuid("agent-tests"))
