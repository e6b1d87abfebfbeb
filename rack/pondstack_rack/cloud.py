"""The other services of the cloud: Placement, Glance, Neutron and Nova."""

from pondstack_rack.daemon import Daemon
from pondstack_rack.layout import Layout, program, share
from pondstack_rack.processes import rpc, run, wsgi


def placement(layout: Layout) -> Daemon:
    """Return Placement's API."""
    return wsgi(layout, "placement", "placement.wsgi.api:application", {"OS_PLACEMENT_CONFIG_DIR": str(layout.etc)})


def glance(layout: Layout) -> Daemon:
    """Return Glance's API."""
    for folder in ("images", "staging", "tasks", "lock"):
        (layout.root / "glance" / folder).mkdir(parents=True, exist_ok=True)
    return wsgi(layout, "glance", "glance.wsgi.api:application", {"OS_GLANCE_CONFIG_DIR": str(layout.etc)})


def neutron(layout: Layout) -> Daemon:
    """Return Neutron's API; no agent stands behind it."""
    env = {"OS_NEUTRON_CONFIG_DIR": str(layout.etc), "OS_NEUTRON_CONFIG_FILES": "neutron.conf"}
    return wsgi(layout, "neutron", "pondstack_rack.services.neutron_wsgi:application", env)


def nova_api(layout: Layout) -> Daemon:
    """Return Nova's API."""
    paste = share("etc/nova/api-paste.ini")  # the first file is the paste configuration
    env = {"OS_NOVA_CONFIG_DIR": str(layout.etc), "OS_NOVA_CONFIG_FILES": f"{paste};nova.conf"}
    return wsgi(layout, "nova-api", "nova.wsgi.osapi_compute:application", env)


def nova_conductor(layout: Layout) -> Daemon:
    """Return Nova's conductor."""
    return rpc(layout, "nova-conductor", _nova(layout, "nova-conductor"), "conductor.rack")


def nova_scheduler(layout: Layout) -> Daemon:
    """Return Nova's scheduler."""
    return rpc(layout, "nova-scheduler", _nova(layout, "nova-scheduler"), "scheduler.rack")


def nova_compute(layout: Layout, host: str) -> Daemon:
    """Return the compute service of a host; one with a real libvirt runs in the host's namespaces."""
    argv = [program("nova-compute"), "--config-file", str(layout.etc / f"nova-compute-{host}.conf")]
    if host in layout.libvirt_hosts:
        argv = [str(layout.bin / f"in-{host}"), *argv]
    return rpc(layout, f"nova-compute-{host}", argv, f"compute.{host}")


def discover_hosts(layout: Layout) -> None:
    """Map the computes that registered into the cell."""
    manage = [program("nova-manage"), "--config-file", str(layout.etc / "nova.conf")]
    run(layout, "nova-manage", [*manage, "cell_v2", "discover_hosts"])


def _nova(layout: Layout, name: str) -> list[str]:
    return [program(name), "--config-file", str(layout.etc / "nova.conf")]
