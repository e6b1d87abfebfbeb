"""What each kind of fault does to the rack, and what it takes to end all of them."""

import contextlib
from typing import TYPE_CHECKING, Any

import oslo_messaging

from pondstack.domain.errors import PondError
from pondstack.rpc.targets import CONTROLLER_TOPIC
from pondstack.rpc.wire import Report
from tests.fixtures.memory_host import ATTACHMENTS

from .fault_links import Trap
from .kernel import Process
from .network import Window
from .plans.power import topic

if TYPE_CHECKING:
    from .node import SimNode
    from .plan import Step
    from .rack import Rack


class Faults:
    """Strikes. What a fault counts as injected only when it met something."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self._stuck: set[tuple[str, int]] = set()

    def strike(self, step: "Step") -> None:
        """Begin a fault."""
        self._rack.scheduler.note(f"FAULT {step}")
        getattr(self, f"_{step.kind}")(step)

    def _count(self, kind: str) -> None:
        self._rack.scheduler.faults[kind] += 1

    # The bus

    def _window(self, step: "Step") -> None:
        until = self._rack.scheduler.now + step.values["seconds"]
        longest = {"longest": step.values["longest"]} if "longest" in step.values else {}
        self._rack.network.windows.append(Window(step.kind, step.target, until, step.values["share"], **longest))

    _lose = _delay = _duplicate = _window

    def _forged_release(self, step: "Step") -> None:
        """Somebody on the bus says that a host has released all that it holds, by calls and in a heartbeat."""
        held = tuple(self._rack.hosts[step.target].memory.folder(ATTACHMENTS))
        if held:
            self._count("release forged")
            self._rack.scheduler.spawn(self._rack.scheduler.world, self._forge, step.target, held)

    def _forge(self, host: str, held: tuple[str, ...]) -> None:
        report = Report(host, 0, 0, "0", pools=tuple(self._rack.devices), released=held).to_wire()
        calls: list[tuple[str, dict[str, Any]]] = [("heartbeat", {"report": report})]
        calls += [
            ("release", {"operation_id": f"forged {uuid}", "allocation_uuid": uuid, "host": host}) for uuid in held
        ]
        for method, arguments in calls:
            with contextlib.suppress(PondError, oslo_messaging.MessagingTimeout):
                self._rack.network.call(CONTROLLER_TOPIC, method, arguments, 1.0)

    def _cut(self, step: "Step") -> None:
        self._rack.network.cut[step.target] = self._rack.scheduler.now + step.values["seconds"]
        self._rack.network.cut[topic(step.target)] = self._rack.network.cut[step.target]
        self._count("process cut off")

    def _cut_broker(self, step: "Step") -> None:
        process = self._process(step.target)
        if process is not None:
            until = self._rack.scheduler.now + step.values["seconds"]
            self._rack.network.cut_from_bus[process.name] = until
            self._count("controller cut off from the broker only")

    # Processes

    def _process(self, name: str) -> Process | None:
        if name in self._rack.hosts:
            return self._rack.hosts[name].process
        node = self._rack.leader() if name == "leader" else self._rack.nodes.get(name)
        return node.process if node else None

    def _trap(self, step: "Step", kind: str, spring: "object") -> None:
        process = self._process(step.target)
        if process is not None and process.alive:
            process.traps.append(Trap(kind, step.values["moment"], spring))  # type: ignore[arg-type]

    def _crash(self, step: "Step") -> None:
        def spring(process: Process) -> None:
            scheduler = self._rack.scheduler
            scheduler.kill(process)
            scheduler.call_at(scheduler.now + step.values["seconds"], lambda: self._rack.start_node(process.name))

        self._trap(step, f"controller killed {_moment(step)}", spring)

    def _pause(self, step: "Step") -> None:
        def spring(process: Process) -> None:
            process.paused_until = self._rack.scheduler.now + step.values["seconds"]

        self._trap(step, f"controller paused {_moment(step)}", spring)

    def _lose_commit(self, step: "Step") -> None:
        self._trap(step, "commit unknown", lambda _process: None)

    def _crash_agent(self, step: "Step") -> None:
        def spring(process: Process) -> None:
            scheduler, host = self._rack.scheduler, self._rack.hosts[process.name]
            scheduler.kill(process)
            scheduler.call_at(scheduler.now + step.values["seconds"], host.start_agent)

        self._trap(step, "agent killed", spring)

    def _pause_agent(self, step: "Step") -> None:
        def spring(process: Process) -> None:
            process.paused_until = self._rack.scheduler.now + step.values["seconds"]

        self._trap(step, "agent paused", spring)

    def _host_death(self, step: "Step") -> None:
        host = self._rack.hosts[step.target]
        if host.up:
            self._count("host died")
            host.die()
            self._rack.scheduler.call_at(
                self._rack.scheduler.now + step.values["seconds"], lambda: self.revive(step.target)
            )

    def revive(self, name: str) -> None:
        """Give a host power again, unless it was taken away."""
        if name in self._rack.operator.gone:
            return
        self._rack.hosts[name].revive()
        self._rack.nova.host_is_back(name)

    def _slow_host(self, step: "Step") -> None:
        self._rack.hosts[step.target].memory.offline_seconds = step.values["seconds"]
        self._count("host offlines slowly")

    def _lender_death(self, step: "Step") -> None:
        assert self._rack.lent
        self._rack.lent.kill_lender(self._rack.hosts[step.target])

    def _data_plane_crash(self, step: "Step") -> None:
        self._rack.hosts[step.target].tenant.data_plane.crash()

    def _lender_freeze(self, step: "Step") -> None:
        assert self._rack.lent
        self._rack.lent.freeze(self._rack.hosts[step.target], step.values["seconds"])

    def _compute_crash(self, step: "Step") -> None:
        assert self._rack.guests
        self._rack.guests.computes[step.target].restart(step.values["seconds"])
        self._count("nova-compute killed")

    def _compute_pause(self, step: "Step") -> None:
        assert self._rack.guests
        self._rack.guests.computes[step.target].pause(step.values["seconds"])
        self._count("nova-compute paused")

    def _revoke_partly(self, step: "Step") -> None:
        assert self._rack.lent
        self._rack.lent.end_keys_partly(self._rack.hosts[step.target], step.values["seconds"])

    def _waker_death(self, step: "Step") -> None:
        assert self._rack.plans
        if self._rack.plans.wakers[step.target].kill():
            self._count("waker killed")

    def _nova_down(self, step: "Step") -> None:
        assert self._rack.plans
        self._rack.plans.cloud.down_until = self._rack.scheduler.now + step.values["seconds"]

    def _nova_lossy(self, step: "Step") -> None:
        assert self._rack.plans
        self._rack.plans.cloud.lossy_until = self._rack.scheduler.now + step.values["seconds"]

    def _lose_books(self, step: "Step") -> None:
        host = self._rack.hosts[step.target]
        if host.process is not None and host.up:
            self._count("books of loans lost")
            self._rack.scheduler.kill(host.process)
            host.tenant.lose_books()
            self._rack.scheduler.call_at(self._rack.scheduler.now + step.values["seconds"], host.start_agent)

    # Clocks, devices, services

    def _clock_jump(self, step: "Step") -> None:
        self._rack.database_skew_seconds += step.values["seconds"]
        self._count("database clock jumped")

    def _agent_clock_jump(self, step: "Step") -> None:
        self._rack.hosts[step.target].wall_skew_seconds += step.values["seconds"]
        self._count("agent clock jumped")

    def _device_failure(self, step: "Step") -> None:
        device = self._rack.devices[step.target]
        device.failed = True
        self._count("device failed")
        self._rack.scheduler.call_at(
            self._rack.scheduler.now + step.values["seconds"], lambda: setattr(device, "failed", False)
        )

    def _slice_stuck(self, step: "Step") -> None:
        device, index = self._rack.devices[step.target], step.values["index"]
        device.stuck.add(index)
        self._count("slice cannot be zeroed")
        self._rack.scheduler.call_at(
            self._rack.scheduler.now + step.values["seconds"], lambda: device.stuck.discard(index)
        )

    def _placement_down(self, step: "Step") -> None:
        self._rack.placement.down_until = self._rack.scheduler.now + step.values["seconds"]

    def _database_down(self, step: "Step") -> None:
        self._rack.network.cut["database"] = self._rack.scheduler.now + step.values["seconds"]
        self._count("database down")

    # What an operator does

    def command(self, step: "Step") -> None:
        """Hand the lead over, audit with repair, or restart a controller as a service manager does.

        All but a restart are told by the bus.
        """
        node = self._rack.leader()
        if node is not None and (step.kind == "restart" or self._rack.network.on_bus(node.name)):
            self._rack.scheduler.spawn(node.process, self._command, step, node)

    def _command(self, step: "Step", node: "SimNode") -> None:
        try:
            if step.kind == "failover":
                node.node.failover(step.target or None)
                self._count("lead handed over")
            elif step.kind == "audit" and node.node.leader is not None:
                node.node.leader.reconciler.audit(repair=True)
            elif step.kind == "restart":
                node.node.stop()
                self._count("controller restarted")
                self._rack.scheduler.kill(node.process)
                self._rack.scheduler.call_at(
                    self._rack.scheduler.now + step.values["seconds"], lambda: self._rack.start_node(node.name)
                )
        except PondError as error:
            self._rack.scheduler.note(f"{step.kind} failed: {error}")

    # The end

    def stop(self) -> None:
        """End all faults: what was down comes up, nothing is lost any more."""
        rack = self._rack
        rack.network.windows.clear()
        rack.network.cut.clear()
        rack.network.cut_from_bus.clear()
        rack.placement.down_until = 0.0
        for device in rack.devices.values():
            device.failed = False
            device.stuck.clear()
        for name, host in rack.hosts.items():
            host.memory.offline_seconds = 0.0
            if host.process is not None:
                host.process.traps.clear()
                host.process.paused_until = 0.0 if not host.asleep else host.process.paused_until
            if not host.up:
                self.revive(name)
            host.start_agent()
        if rack.lent is not None:
            rack.lent.stop_faults()
        if rack.plans is not None:
            rack.plans.stop_faults()
        for node in rack.nodes.values():
            node.process.traps.clear()
        for name in rack.history.controllers:
            rack.start_node(name)


def _moment(step: "Step") -> str:
    return {
        "db.before": "before a commit",
        "db.after": "after a commit",
        "device.before": "before a grant",
        "device.after": "after a grant or a zeroing",
        "zeroing.before": "before a zeroing",
        "rpc": "before a call",
    }.get(step.values["moment"], "anywhere")
