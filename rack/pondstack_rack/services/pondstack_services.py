"""pondstack's own part of the rack: the pool device, controller, API and agents."""

import os
import signal
import subprocess
from collections.abc import Collection
from pathlib import Path

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import HttpError

from pondstack.controller.lending.sealing import new_line
from pondstack.devices import pool_uuid
from pondstack.domain.errors import PondError
from pondstack.domain.units import COMPUTE_TRAIT, RESOURCE_CLASS
from pondstack.rpc.identity.identity import Identity, Role
from pondstack_agent.data_plane.client import ControlClient
from pondstack_agent.lending.program import LENDER
from pondstack_agent.power.program import WAKER
from pondstack_rack import config
from pondstack_rack.daemon import Daemon
from pondstack_rack.layout import Layout, RackError, Sizes, program
from pondstack_rack.processes import plain, rpc, run, wsgi
from pondstack_rack.services import broker_users, database, keystone, tcg_qemu
from pondstack_rack.wait import wait_until

ROOM_MIB = 16
"""What the device keeps beside its memory."""
SERIAL = "rack-pool0"
POOL_SECONDS = 150.0
CONTROLLERS = ("controller1", "controller2")
"""Names of the controllers: on one database and one broker, one leads and the other stands by."""
API, SCHEDULER = Identity(Role.API, "rack"), Identity(Role.SCHEDULER, "rack")
KINDS = ("nova-compute", "pondstack-agent", "pondstack-controller", "pondstack-data-plane")
"""Services of which there are several, each of a host or with a name of its own."""
UNMOUNT_SECONDS = 10.0
LENDER_SECONDS = 20.0
DATA_PLANE_SECONDS = 10.0
MIRRORS = "guest-mirrors"
"""Folder of what guests of a host with remote memory have evicted."""
USER = "root"
"""Of the agents of a rack."""


def make_pool(layout: Layout) -> None:
    """Mount the memory that stands for the pool device, and make the device in it."""
    layout.pool.mkdir(exist_ok=True)
    if not pool_is_mounted(layout):
        size = f"size={layout.sizes.slices * 1024 + ROOM_MIB}m,mode=700"
        _call("mount", "-t", "tmpfs", "-o", size, "pondstack-pool", str(layout.pool))
    device = ["device", "create", str(layout.pool_device), "--slices", str(layout.sizes.slices), "--serial", SERIAL]
    run(layout, "pool", [program("pondstack-manage"), *device])


def make_sealing_key(layout: Layout) -> None:
    """Have the controllers keep keys of lent memory, so that hosts which sleep serve new loans, too."""
    config.write(layout.sealing_keys, new_line("rack") + "\n")


def parties(layout: Layout) -> list[Identity]:
    """Return who takes part on the message bus."""
    found = [*(Identity(Role.CONTROLLER, name) for name in CONTROLLERS), API, SCHEDULER]
    return found + [Identity(role, host) for host in layout.all_hosts for role in (Role.AGENT, Role.COMPUTE)]


def make_broker_users(layout: Layout) -> None:
    """Have each node log in as a user of its own."""
    broker_users.make(layout, database.rabbitmq(layout), parties(layout))


def issue_credentials(layout: Layout) -> None:
    """Have each service of the rack sign in its own name. One user runs them all, so that they share a folder."""
    names = [str(party) for party in parties(layout)]
    folders = ["--folder", str(layout.credentials), "--authority", str(layout.credentials)]
    run(layout, "credentials", [program("pondstack-manage"), "credentials", "issue", *names, *folders])


def pool_is_mounted(layout: Layout) -> bool:
    """Whether the pool's memory is there; it is gone after a restart of the machine."""
    return os.path.ismount(layout.pool)


def unmount_pool(layout: Layout) -> None:
    """Give the pool's memory back."""
    if not wait_until(lambda: _unmounted(layout), UNMOUNT_SECONDS):
        _call("umount", str(layout.pool))


def _unmounted(layout: Layout) -> bool:
    # The last process that had it open may still be dying.
    return (
        not pool_is_mounted(layout) or subprocess.run(["umount", str(layout.pool)], capture_output=True).returncode == 0
    )


def controller_service(name: str) -> str:
    """Return the name of a controller's service."""
    return f"pondstack-{name}"


def service_of(kind: str, host: str) -> str:
    """Return the service of a kind that is of a host, or the controller with that name."""
    return controller_service(host) if kind == "pondstack-controller" else f"{kind}-{host}"


def controller(layout: Layout, name: str) -> Daemon:
    """Return a controller. It is ready when it answers reads, whether it leads or stands by."""
    service = controller_service(name)
    files = (layout.etc / "pondstack.conf", layout.etc / f"{service}.conf")
    argv = [program("pondstack-controller"), *(word for file in files for word in ("--config-file", str(file)))]
    return rpc(layout, service, argv, f"pondstack-node.{name}")


def api(layout: Layout) -> Daemon:
    """Return the REST API."""
    env = {"PONDSTACK_CONF_FILE": str(layout.etc / "pondstack.conf")}
    return wsgi(layout, "pondstack-api", "pondstack_api.wsgi:application", env)


def agent(layout: Layout, host: str) -> Daemon:
    """Return the agent of a host; one of a libvirt host runs in the host's namespaces."""
    argv = [program("pondstack-agent"), "--config-file", str(layout.etc / f"pondstack-agent-{host}.conf")]
    if host in layout.libvirt_hosts:
        argv = [str(layout.bin / f"in-{host}"), *argv]
    return rpc(layout, f"pondstack-agent-{host}", argv, f"pondstack-agent.{host}")


def data_plane(layout: Layout, host: str) -> Daemon:
    """Return the data plane of a host. It is ready when it answers; guests with remote memory wait while it is down."""
    folder = layout.host(host) / "data-plane"
    argv = [program("pondstack-data-plane"), "serve", str(folder), USER, str(layout.host(host) / MIRRORS)]
    return plain(layout, f"pondstack-data-plane-{host}", argv, lambda: _answers(folder))


def _answers(folder: Path) -> bool:
    try:
        return ControlClient(folder, DATA_PLANE_SECONDS).guests() is not None
    except PondError:
        return False


def services(layout: Layout) -> dict[str, Daemon]:
    """Return pondstack's services by name."""
    planes = {f"pondstack-data-plane-{host}": data_plane(layout, host) for host in layout.all_hosts}
    agents = {f"pondstack-agent-{host}": agent(layout, host) for host in layout.all_hosts}
    controllers = {controller_service(name): controller(layout, name) for name in CONTROLLERS}
    return controllers | {"pondstack-api": api(layout)} | planes | agents


def configure(layout: Layout, values: dict[str, object]) -> None:
    """Write pondstack's own configuration files and the emulator's script."""
    programs = {"pondstack_qemu": program("pondstack-qemu"), "python": program("python"), "tcg_qemu": tcg_qemu.__file__}
    values = {**values, **programs, "pool_device": layout.pool_device}
    values |= {"sealing_keys": layout.sealing_keys, "bus": broker_users.url(layout, API)}
    config.write(layout.etc / "pondstack.conf", config.render("pondstack.conf", values))
    for name in CONTROLLERS:
        values_of = {
            "name": name,
            "metrics_port": layout.port(controller_service(name)),
            "bus": broker_users.url(layout, Identity(Role.CONTROLLER, name)),
            "notifications": broker_users.notification_url(layout, name),
        }
        text = config.render("pondstack-controller.conf", values_of)
        config.write(layout.etc / f"{controller_service(name)}.conf", text)
    for host in layout.all_hosts:
        own = {
            "host": host,
            "etc": layout.etc,
            "directory": layout.host(host),
            "lenders": layout.lenders,
            "traces": layout.traces,
            "host_traces": layout.host_traces,
        }
        real = host in layout.libvirt_hosts
        own["bus"] = broker_users.url(layout, Identity(Role.AGENT, host))
        own |= {"guests": "libvirt" if real else "synthetic", "look_seconds": _look_seconds(layout, real)}
        (layout.host(host) / MIRRORS).mkdir(exist_ok=True, mode=0o700)
        text = config.render("pondstack-agent.conf", {**values, **own})
        config.write(layout.etc / f"pondstack-agent-{host}.conf", text)
    for name in ("qemu-pond", "qemu-tcg"):
        config.write(layout.bin / name, config.render(f"{name}.sh", values), mode=0o700)


def _look_seconds(layout: Layout, real: bool) -> int:
    """Return how often an agent looks at its guests. Those of fake computes live for seconds, in a small rack.

    Hundreds of them, of which a dozen rows are written each time, would have the machine do little else.
    """
    return 15 if real or layout.sizes.fakes > Sizes().fakes else 3


def lender_processes(layout: Layout) -> list[int]:
    """Return the processes that hold what hosts lend: they outlive their agents, which start them."""
    folders = [layout.host(host) / "agent" / "lender" for host in layout.all_hosts]
    return [LENDER.pid(folder) for folder in folders if LENDER.runs(folder)]


def end_lenders(layout: Layout) -> None:
    """End the processes that hold what hosts lend, and those that wake them."""
    wakers = [layout.host(host) / "agent" / "waker" for host in layout.all_hosts]
    for pid in [*lender_processes(layout), *(WAKER.pid(folder) for folder in wakers if WAKER.runs(folder))]:
        os.kill(pid, signal.SIGKILL)
    if not wait_until(lambda: not lender_processes(layout), LENDER_SECONDS, poll_seconds=0.05):
        raise RackError(f"the lenders {lender_processes(layout)} do not end; look at them by ps")


def wait_for_pool(layout: Layout, hosts: Collection[str] | None = None, timeout_seconds: float = POOL_SECONDS) -> None:
    """Wait until the pool and its hosts are in Placement and every agent reports: only then can a guest be placed.

    `hosts`: the rack's own by default.
    """
    session = keystone.session(layout)
    placement = Adapter(session, service_type="placement", region_name="RegionOne", default_microversion="1.39")
    memory = Adapter(session, service_type="memory", region_name="RegionOne")
    wanted = set(layout.all_hosts if hosts is None else hosts)
    missing = ""

    def complete() -> bool:
        nonlocal missing
        try:
            missing = _missing(placement, memory, wanted)
        except HttpError as error:
            missing = str(error)
        return not missing

    if not wait_until(complete, timeout_seconds, poll_seconds=0.5):
        logs = f"{layout.log}/pondstack-controller*.log, pondstack-agent-*.log"
        raise RackError(f"after {timeout_seconds:.0f} s the pool is not ready: {missing}; logs: {logs}")


def _missing(placement: Adapter, memory: Adapter, wanted: set[str]) -> str:
    provider = f"/resource_providers/{pool_uuid(SERIAL)}"
    if RESOURCE_CLASS not in placement.get(f"{provider}/inventories").json()["inventories"]:
        return "it has no inventory in Placement"
    shared = ",".join(placement.get(f"{provider}/aggregates").json()["aggregates"])
    members = placement.get(f"/resource_providers?member_of=in:{shared}").json()["resource_providers"] if shared else []
    if outside := wanted - {entry["name"] for entry in members}:
        return f"Placement does not share it with {', '.join(sorted(outside))}"
    # nova-compute's first update is lost, to be repeated a minute later, when our aggregate comes in the middle of it.
    ready = placement.get(f"/resource_providers?required={COMPUTE_TRAIT}").json()["resource_providers"]
    if unready := wanted - {entry["name"] for entry in ready}:
        return f"nova-compute of {', '.join(sorted(unready))} has not told Placement its traits"
    up = {host["name"] for host in memory.get("/hosts?limit=1000").json()["hosts"] if host["up"]}
    return f"no word from the agents of {', '.join(sorted(wanted - up))}" if wanted - up else ""


def _call(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RackError(f"{' '.join(argv)}: {done.stderr.strip()}")
