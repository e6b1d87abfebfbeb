"""The rack as a library: made, started, stopped and removed; single services by name.

rack = Rack(Path("/tmp/r"), Sizes(hosts=2, fakes=4, slices=16, port_base=23000))
rack.up()
rack.service("nova-scheduler").kill()
rack.connection().compute.servers()
rack.down()
"""

import fcntl
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self

import openstack

from pondstack.rpc.identity.identity import Identity, Role
from pondstack_rack import cloud, config, ports
from pondstack_rack import layout as lay
from pondstack_rack.layout import Layout, RackError, Sizes
from pondstack_rack.servers import certificates
from pondstack_rack.services import broker_users, database, flavors, image, keystone, libvirt, pondstack_services
from pondstack_rack.steps import Progress, Step, run_steps


class Service(Protocol):
    """What every service of the rack can do; start() and restart() wait until it serves."""

    @property
    def running(self) -> bool:
        """Whether its process lives."""

    def start(self) -> object:
        """Start; idempotent."""

    def stop(self) -> None:
        """Stop in order; idempotent."""

    def kill(self) -> None:
        """SIGKILL."""

    def restart(self) -> None:
        """Stop and start."""


class Rack:
    """One rack; the object is a handle, all state is in the folder and in the processes."""

    def __init__(self, directory: Path, sizes: Sizes | None = None, write: Callable[[str], None] = print) -> None:
        self.layout = Layout.make(directory, sizes or Sizes())
        self.progress = Progress(write, sys.stdout if write is print and sys.stdout.isatty() else None)
        self._services = self._make_services()

    @classmethod
    def open(cls, directory: Path, write: Callable[[str], None] = print) -> Self:
        """Open the rack that a folder holds; RackError when there is none."""
        return cls(directory, Layout.load(directory).sizes, write)

    def _make_services(self) -> dict[str, Service]:
        layout = self.layout
        services: dict[str, Service] = {
            "mariadb": database.mariadb(layout),
            "rabbitmq": database.rabbitmq(layout),
        }
        for host in layout.libvirt_hosts:
            services[host] = libvirt.namespaces(layout, host)
            services[f"libvirtd-{host}"] = libvirt.libvirtd(layout, host)
        services |= {
            "keystone": keystone.service(layout),
            "placement": cloud.placement(layout),
            "glance": cloud.glance(layout),
            "neutron": cloud.neutron(layout),
            "nova-api": cloud.nova_api(layout),
            "nova-conductor": cloud.nova_conductor(layout),
            "nova-scheduler": cloud.nova_scheduler(layout),
        }
        services |= pondstack_services.services(layout)
        services |= {f"nova-compute-{host}": cloud.nova_compute(layout, host) for host in layout.all_hosts}
        return services

    def service(self, name: str) -> Service:
        """Return a service by name, such as nova-scheduler, nova-compute-host1, pondstack-agent-fake1, rabbitmq."""
        try:
            return self._services[name]
        except KeyError:
            raise RackError(f"no service {name}; there are: {', '.join(self._services)}") from None

    @property
    def services(self) -> dict[str, Service]:
        """All services by name, in the order of their start."""
        return dict(self._services)

    def connection(self, user: str = "admin") -> Any:
        """Return an openstacksdk connection of the administrator (admin) or the tenant (demo)."""
        return openstack.connection.Connection(
            session=keystone.session(self.layout, user),
            region_name="RegionOne",
            interface="public",
            compute_default_microversion="2.95",
            placement_default_microversion="1.39",
        )

    def up(self) -> bool:
        """Start what does not run and check what does; return False when all ran already."""
        with self.locked():
            stopped = [name for name, service in self._services.items() if not service.running]
            finished = (self.layout.done / "rack").exists()
            if finished and not pondstack_services.pool_is_mounted(self.layout):
                raise RackError("the pool is not mounted (was the machine restarted?): make rack-down, then make rack")
            ports.check_free({name: self.layout.port(name) for name in self._ports_of(stopped)})
            run_steps(self._steps(), self.layout.done, self.progress)
            (self.layout.done / "rack").touch()
            return bool(stopped) or not finished

    def down(self) -> None:
        """Stop everything by recorded pids, unmount, and remove the folder."""
        with self.locked():
            (self.layout.done / "rack").unlink(missing_ok=True)
            # Nothing is kept, so nothing is asked to finish its work first.
            self._end(lambda name: self._services[name].kill())
            pondstack_services.unmount_pool(self.layout)
            broker_users.forget_queues(self.layout.sizes.port_base)
            lay.remove(self.layout.root)

    def stop(self) -> None:
        """Stop all services in order, guests included; what they stored stays."""
        self._end(lambda name: self._services[name].stop())

    def _end(self, end: Callable[[str], None]) -> None:
        holders = [name for name in self._services if name in self.layout.libvirt_hosts]
        servers = ["mariadb", "rabbitmq"]
        libvirtds = [f"libvirtd-{host}" for host in holders]
        others = [name for name in self._services if name not in (*holders, *servers, *libvirtds)]
        self._all(others, end)
        pondstack_services.end_lenders(self.layout)
        for group in (libvirtds, servers):
            self._all(group, end)
        self._all(holders, lambda host: libvirt.stop_guests(self.layout, host))
        self._all(holders, end)

    def _all(self, names: list[str], act: Callable[[str], None]) -> None:
        quiet = Progress(lambda _: None)
        run_steps([Step(f"stop {name}", functools.partial(act, name)) for name in names], self.layout.done, quiet)

    def _ports_of(self, names: list[str]) -> Iterator[str]:
        for name in names:
            if name in lay.PORT_OFFSETS:
                yield name
            if name == "rabbitmq":
                yield from ("epmd", "rabbitmq-dist")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands away from this rack; RackError when one works on it."""
        with (self.layout.root / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RackError(f"another command works on {self.layout.root}: wait for it") from None
            yield

    def _make_certificates(self) -> None:
        if self.layout.sizes.tls:
            certificates.make(self.layout.certificates, lay.TLS_SERVERS)

    def _configure(self) -> None:
        layout = self.layout
        values = config.common(layout, database.mariadb(layout), database.rabbitmq(layout))
        values["rabbit"] = config.template("rabbit.conf")
        values["credentials"] = layout.credentials
        values["bus_scheduler"] = broker_users.url(layout, pondstack_services.SCHEDULER)
        values["nova_common"] = config.render("nova-common.conf", values)
        for name in ("keystone.conf", "placement.conf", "glance-api.conf", "neutron.conf", "nova.conf"):
            config.write(layout.etc / name, config.render(name, values))
        for host in layout.all_hosts:
            file = layout.etc / f"nova-compute-{host}.conf"
            own = {"host": host, "file": file, "directory": layout.host(host)}
            real = host in layout.libvirt_hosts
            own["bus"] = broker_users.url(layout, Identity(Role.COMPUTE, host))
            own["compute_driver"] = "pond.PondLibvirtDriver" if real else "pond.PondFakeDriver"
            own["instances"] = (layout.root if real else layout.host(host)) / "instances"
            (layout.host(host) / "nova").mkdir(parents=True, exist_ok=True)
            config.write(file, config.render("nova-compute.conf", {**values, **own}))
        pondstack_services.configure(layout, values)
        for user, name in (("admin", "openrc"), (keystone.TENANT, f"openrc-{keystone.TENANT}")):
            openrc = {"user": user, "bin": Path(lay.program("openstack")).parent}
            config.write(layout.root / name, config.render("openrc", {**values, **openrc}))

    def _steps(self) -> list[Step]:
        layout, schemas = self.layout, database.schema_steps(self.layout)
        steps = [
            Step("certificates", self._make_certificates, once=True),
            self._start("mariadb", "certificates"),
            self._start("rabbitmq", "certificates"),
            Step("configuration", self._configure, ("mariadb",), once=True),
            Step("pool", lambda: pondstack_services.make_pool(layout), once=True, log=layout.log / "pool.log"),
            Step(
                "credentials",
                lambda: pondstack_services.issue_credentials(layout),
                once=True,
                log=layout.log / "credentials.log",
            ),
            Step(
                "notifications",
                lambda: database.limit_notifications(database.rabbitmq(layout)),
                ("rabbitmq",),
                once=True,
            ),
            Step("sealing key", lambda: pondstack_services.make_sealing_key(layout), once=True),
            Step("broker users", lambda: pondstack_services.make_broker_users(layout), ("rabbitmq",), once=True),
            Step("guest image", lambda: image.build(layout), once=True),
        ]
        steps += [
            Step(f"{name} schema", run, ("configuration",), once=True, log=layout.log / f"{name}-manage.log")
            for name, run in schemas.items()
        ]
        steps += [
            Step("keystone bootstrap", lambda: keystone.bootstrap(layout), ("keystone schema",), once=True),
            self._start("keystone", "keystone bootstrap"),
            Step("catalogue", lambda: keystone.fill(layout), ("keystone",), once=True),
            self._start("placement", "placement schema", "catalogue"),
            self._start("glance", "glance schema", "catalogue"),
            self._start("neutron", "neutron schema", "catalogue"),
            self._start("nova-api", "nova schema", "catalogue", "rabbitmq"),
            self._start("nova-conductor", "nova schema", "rabbitmq", "placement"),
            self._start("nova-scheduler", "nova schema", "broker users", "placement", "credentials"),
            Step("images", lambda: image.upload(layout, self.connection()), ("glance", "guest image"), once=True),
            Step("flavors", lambda: flavors.make(self.connection()), ("nova-api",), once=True),
        ]
        for host in layout.libvirt_hosts:
            steps += [
                Step(f"{host} folders", functools.partial(libvirt.prepare, layout, host), once=True),
                self._start(host, f"{host} folders", "pool"),
                self._start(f"libvirtd-{host}", host),
            ]
        steps += [
            self._start("pondstack-api", "pondstack schema", "catalogue", "broker users", "credentials"),
        ]
        controllers = [pondstack_services.controller_service(name) for name in pondstack_services.CONTROLLERS]
        needs = ("pondstack schema", "catalogue", "broker users", "placement", "pool", "credentials", "sealing key")
        steps += [self._start(name, *needs) for name in controllers]
        computes = [f"nova-compute-{host}" for host in layout.all_hosts]
        for host, compute in zip(layout.all_hosts, computes, strict=True):
            real = host in layout.libvirt_hosts
            libvirtd = (f"libvirtd-{host}",) if real else ()
            agent = f"pondstack-agent-{host}"
            # The agent of a libvirt host lives in that host's namespaces.
            steps.append(
                self._start(agent, "configuration", "broker users", "pool", "credentials", *((host,) if real else ()))
            )
            plane = f"pondstack-data-plane-{host}"
            steps.append(self._start(plane, "configuration"))
            steps.append(self._start(compute, "nova-conductor", "placement", agent, plane, *libvirtd))
        everything = ("cell", *controllers, "pondstack-api", "flavors", "images", "neutron", "nova-scheduler")
        steps.append(Step("pool in placement", lambda: pondstack_services.wait_for_pool(layout), everything))
        steps.append(Step("cell", lambda: cloud.discover_hosts(layout), ("nova schema", *computes), once=True))
        return steps

    def _start(self, name: str, *needs: str) -> Step:
        service = self._services[name]
        log = getattr(service, "log_file", None)
        return Step(name, service.start, needs, log=log)
