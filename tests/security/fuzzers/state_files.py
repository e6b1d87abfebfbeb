"""The agent's state folder, damaged: the agent starts with what is right, or refuses and names the file.

A real agent has attached and detached over an emulated device; beside its records lie those of all other folders. Each
step damages one file, then looks the folder through as the agent's start does, starts an agent over it, and starts a
guest over its attachments. Whatever the agent then reports or a guest gets, the device's table must allow.
"""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from oslo_config import cfg

from pondstack.conf import agent as agent_conf
from pondstack.devices import pool_uuid
from pondstack.devices.emulated import create_device
from pondstack.devices.emulated_files import MEMORY
from pondstack.domain.errors import PondError
from pondstack.domain.model import indexes_of
from pondstack_agent.borrower.records import Store
from pondstack_agent.build import Agent, build_agent
from pondstack_agent.drivers.cxl.allocations import Allocations
from pondstack_agent.drivers.grant_records import extents_in
from pondstack_agent.lending.records import Entries
from pondstack_agent.qemu import wrapper
from pondstack_agent.records import Records
from pondstack_agent.remote.records import Consumers
from pondstack_agent.state_check import check_state
from pondstack_agent.tiering.kernel import Kernel
from pondstack_agent.tiering.policy import Policy
from pondstack_agent.tiering.tiering import Tiering
from tests.fixtures.fake_controller import FakeController
from tests.fixtures.rpc_call import call
from tests.security.fuzzers import state_samples
from tests.security.fuzzers.mutations import spoilt_json
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target

SLICES, MIB = 8, 2**20
GUEST = state_samples.name("guest")
NODE = {"qom-type": "memory-backend-ram", "id": "ram-node1", "size": 2 * MIB}
QEMU = ["-uuid", GUEST, "-machine", "q35", "-object", json.dumps(NODE)]


@dataclass
class Later:
    """An executor that runs nothing until it is told."""

    waiting: list[Any] = field(default_factory=list)

    def submit(self, function: Any, /, *arguments: Any) -> None:
        """Keep it."""
        self.waiting.append((function, arguments))

    def run(self) -> None:
        """Run what waits."""
        while self.waiting:
            function, arguments = self.waiting.pop(0)
            function(*arguments)


class StateFiles(Target):
    """One folder that is damaged again and again; an honest copy lies beside it."""

    name = "state files"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        root = Path(self.opened.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-")))
        self._live, self._honest = root / "live", root / "honest"
        (self._live / "kernel").mkdir(parents=True)
        self._device = create_device(self._live / "device", SLICES, slice_mib=1, serial="fuzz")
        self._state = self._live / "state"
        self._written: list[str] = []
        controller = FakeController({"pool0": self._device})
        agent, later = self._start(controller)
        asked = {"pool_uuid": pool_uuid("fuzz"), "pool_mib": 2, "guest_mib": 16}
        for operation, consumer in (("op1", GUEST), ("op2", state_samples.CONSUMER)):
            call(agent.endpoint.attach, operation_id=operation, consumer_uuid=consumer, **asked)
        call(agent.endpoint.detach, operation_id="op3", consumer_uuid=state_samples.CONSUMER)
        later.run()
        agent.reporter.heartbeat()
        self._grants = dict(controller.grants), dict(controller.states), dict(controller.operations)
        state_samples.write(self._state, without="attachments")
        for name in ("memory", "slices"):
            (self._live / "device" / name).chmod(0o600)
        shutil.copytree(self._live, self._honest)
        self._files = sorted(path.relative_to(self._live) for path in self._live.rglob("*.json"))

    def attack(self) -> None:
        """Damage one file, and use what is there."""
        state_samples.copied(self._honest, self._live)
        self._written.clear()
        file = self._live / self.dice.choice(self._files)
        damaged = self._damage(self.dice, file)
        try:
            check_state(self._state)
            self._use()
        except PondError as error:
            self.note(REFUSED)
            if file.name not in error.message and str(self._device.path) not in error.message:
                self.fault(f"the error does not name {damaged}: {error.message}")
            return
        self.note(ACCEPTED)

    def _damage(self, dice: Random, file: Path) -> str:
        """Damage a file, or have another record in its place; returns what was done, in short."""
        before = file.read_bytes()
        after = spoilt_json(dice, before)
        if dice.random() < 0.1:
            after = (self._live / dice.choice(self._files)).read_bytes()
        file.write_bytes(after)
        return f"{file.name}: {before[:300]!r} is {after[:300]!r}"

    # What a host does with the folder

    def _use(self) -> None:
        controller = FakeController({"pool0": self._device})
        grants, states, operations = self._grants
        controller.grants, controller.states, controller.operations = dict(grants), dict(states), dict(operations)
        self._guest_starts()
        agent, later = self._start(controller)
        agent.housekeeper.recover()
        agent.tiering.start()
        if agent.lending is not None:
            agent.lending.get_lending()
        later.run()
        self._check_report(agent)
        agent.reporter.heartbeat()
        agent.housekeeper.tidy(60.0, 3600.0)
        agent.tiering.stop()
        later.run()
        self._read_others()
        self._check_kernel()

    def _start(self, controller: FakeController) -> tuple[Agent, Later]:
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[])
        for group, option, value in (
            (None, "host", state_samples.HOST),
            ("agent", "state_dir", str(self._state)),
            ("emulated", "device_paths", [str(self._device.path)]),
        ):
            conf.set_override(option, value, group=group)
        later = Later()
        kernel = Kernel(self._live / "kernel", self._write)
        tiering = Tiering(Policy(), kernel, Records(self._state / "tiering"))
        agent = build_agent(conf, controller, later, clock=lambda: 2000.0, tiering=tiering)  # type: ignore[arg-type]
        return agent, later

    def _write(self, path: str, _text: str) -> str:
        self._written.append(path)
        return ""

    def _read_others(self) -> None:
        """Read what an agent with CXL memory, or with lent memory, reads."""
        clock = lambda: 2000.0  # noqa: E731
        allocations = Allocations(self._state, lambda _step: None)
        for record in allocations.all():
            allocations.dirty(record)
            allocations.state(record["allocation_uuid"])
            with allocations.unused(record, {record["consumer_uuid"]: 1}):
                pass
        allocations.stuck()
        Entries(Records(self._state / "lending"), clock).unfinished()
        for held in Store(Records(self._state / "borrowing"), clock).all():
            held.by_allocation()
        for consumer in Consumers(Records(self._state / "remote"), clock).all():
            if Path("pages", consumer.consumer_uuid).parent != Path("pages"):
                self.fault(f"consumer {consumer.consumer_uuid!r} has its pages elsewhere")

    # What must not be

    def _permitted(self, allocation_uuid: str) -> set[int]:
        """Return which slices the device lets an allocation of this host use."""
        table = self._device.permissions().items()
        return {index for index, entry in table if (entry.host, entry.tag) == (state_samples.HOST, allocation_uuid)}

    def _check_report(self, agent: Agent) -> None:
        for item in agent.reporter.report().attached:
            if max(indexes_of(item.extents)) >= 2**20:
                self.fault(f"the report has slices that no device has: {item.extents}")

    def _guest_starts(self) -> None:
        held: list[int] = []
        hold = wrapper.hold

        def hold_for_now(path: Path) -> int:
            held.append(hold(path))
            return held[-1]

        try:
            with patch.object(wrapper, "hold", hold_for_now):
                arguments = wrapper.prepare(QEMU, self._state, state_samples.HOST)
        except wrapper.Refused:
            return  # prepare has let go of the record
        for handle in held:
            os.close(handle)
        found = [json.loads(word) for before, word in zip(QEMU, arguments, strict=True) if before != word]
        allowed: set[int] = set()
        for record in Records(self._state / wrapper.FOLDER).all().values():
            if record["consumer_uuid"] == GUEST:
                allowed |= self._permitted(record["allocation_uuid"]) & set(indexes_of(extents_in(record)))
        for backend in found:
            slices = set(range(backend["offset"] // MIB, -(-(backend["offset"] + backend["size"]) // MIB)))
            if backend["mem-path"] != str(self._device.path / MEMORY) or not slices <= allowed:
                self.fault(f"a guest starts on {backend}, and is allowed {allowed}")

    def _check_kernel(self) -> None:
        roots = [self._live / "kernel" / name for name in ("sys", "proc/sys")]
        for path in self._written:
            if not any(Path(path).resolve().is_relative_to(root) for root in roots):
                self.fault(f"the agent writes {path}")
