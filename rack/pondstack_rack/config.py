"""Configuration files from the templates of this package; each names only what differs from a service's default."""

import uuid
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

from pondstack_rack import layout as lay
from pondstack_rack.layout import MIGRATION_OFFSET, MIGRATION_PORTS, Layout, program
from pondstack_rack.servers import MariaDBServer, RabbitMQServer

DATABASES = ("keystone", "placement", "glance", "neutron", "nova_api", "nova", "nova_cell0", "pondstack")
SERVICE_USER = "service"


def render(name: str, values: Mapping[str, object]) -> str:
    """Fill a template in; a name without a value is a KeyError."""
    return Template(template(name)).substitute(values)


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    """Write a file that may hold a password."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=mode)
    path.chmod(mode)
    path.write_text(text)
    return path


def password_auth(layout: Layout) -> str:
    """Options of a keystoneauth group for the rack's one service user."""
    return "\n".join(
        [
            f"auth_url = {layout.url('keystone')}/v3",
            "auth_type = password",
            f"username = {SERVICE_USER}",
            f"password = {layout.password}",
            "project_name = service",
            "user_domain_id = default",
            "project_domain_id = default",
            "region_name = RegionOne",
            cafile(layout),
        ]
    )


def cafile(layout: Layout) -> str:
    """Return the option of a keystoneauth group by which a rack with TLS is known, "" without TLS."""
    return f"cafile = {layout.authority}" if layout.authority else ""


def common(layout: Layout, mariadb: MariaDBServer, rabbitmq: RabbitMQServer) -> dict[str, object]:
    """Return the values that all templates share; makes the databases."""
    auth = password_auth(layout)
    values: dict[str, object] = {
        "root": layout.root,
        "share": lay.share(""),
        "password": layout.password,
        "transport_url": rabbitmq.transport_url(),
        "privsep_helper": program("privsep-helper"),
        "password_auth": auth,
        "cafile": cafile(layout),
        "os_cacert": f"export OS_CACERT={layout.authority}\n" if layout.authority else "",
        "authtoken": f"www_authenticate_uri = {layout.url('keystone')}/v3\n"
        f"service_token_roles = service\nservice_token_roles_required = true\ninterface = public\n{auth}",
    }
    values |= {f"database_{name}": mariadb.database_url(name) for name in DATABASES}
    values |= {f"url_{name.replace('-', '_')}": layout.url(name) for name in lay.PORT_OFFSETS}
    return values


def host_values(layout: Layout, host: str) -> dict[str, object]:
    """Return the values of one libvirt host: its address, migration ports and identity."""
    number = layout.libvirt_hosts.index(host)
    first = layout.sizes.port_base + MIGRATION_OFFSET + number * MIGRATION_PORTS
    return {
        "root": layout.root,
        "host": host,
        "directory": layout.host(host),
        "enter": layout.bin / f"in-{host}",
        "address": address(layout, host),
        "migration_port_min": first,
        "migration_port_max": first + MIGRATION_PORTS - 1,
        "host_uuid": uuid.uuid5(uuid.NAMESPACE_URL, f"{layout.root}/{host}"),
    }


def address(layout: Layout, host: str) -> str:
    """Return the loopback address of a libvirt host; its name resolves to it inside the hosts only."""
    return f"127.0.0.{11 + layout.libvirt_hosts.index(host)}"


def template(name: str) -> str:
    """Return a file of the templates folder as it is."""
    return (resources.files("pondstack_rack") / "templates" / name).read_text()
