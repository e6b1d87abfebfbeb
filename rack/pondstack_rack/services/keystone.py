"""Identity: bootstrap, the catalogue, the service user and a tenant."""

from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack import config
from pondstack_rack.daemon import Daemon
from pondstack_rack.layout import Layout, program
from pondstack_rack.processes import run, wsgi

TENANT = "demo"
UNLIMITED = -1
CATALOGUE = {
    "placement": ("placement", "placement", ""),
    "glance": ("image", "glance", ""),
    "neutron": ("network", "neutron", ""),
    "nova-api": ("compute", "nova", "/v2.1"),
    "pondstack-api": ("memory", "pondstack", ""),
}
"""Service of the rack: type, name and path of its endpoint."""

LIMITS = {
    "servers": UNLIMITED,
    **{f"class:{name}": UNLIMITED for name in ("VCPU", "MEMORY_MB", "DISK_GB", RESOURCE_CLASS)},
    "server_metadata_items": 128,
    "server_injected_files": 5,
    "server_injected_file_content_bytes": 10240,
    "server_injected_file_path_bytes": 255,
    "server_key_pairs": 100,
    "server_groups": 100,
    "server_group_members": 100,
}
"""What Nova counts by unified limits. All of it is registered: what is not costs Nova one question more each time."""


def service(layout: Layout) -> Daemon:
    """Return Keystone's API."""
    env = {"OS_KEYSTONE_CONFIG_DIR": str(layout.etc), "OS_KEYSTONE_CONFIG_FILES": "keystone.conf"}
    return wsgi(layout, "keystone", "keystone.wsgi.api:application", env)


def bootstrap(layout: Layout) -> None:
    """Make the keys, the administrator and the identity endpoint; needs the schema, no running service."""
    manage = [program("keystone-manage"), "--config-file", str(layout.etc / "keystone.conf")]
    as_root = ["--keystone-user", "root", "--keystone-group", "root"]
    for keys in ("fernet", "credential"):
        (layout.root / "keystone" / keys).mkdir(parents=True, exist_ok=True, mode=0o700)
    run(layout, "keystone-manage", [*manage, "fernet_setup", *as_root])
    url = f"{layout.url('keystone')}/v3"
    words = ["bootstrap", "--bootstrap-password", layout.password, "--bootstrap-region-id", "RegionOne"]
    run(layout, "keystone-manage", [*manage, *words, "--bootstrap-public-url", url])


def session(layout: Layout, user: str = "admin", project: str | None = None) -> Session:
    """Return an authenticated session of the administrator or the tenant; `project`: not in that of his name."""
    auth = Password(
        f"{layout.url('keystone')}/v3",
        username=user,
        password=layout.password,
        project_name=project or user,
        user_domain_id="default",
        project_domain_id="default",
    )
    return Session(auth, timeout=120, verify=str(layout.authority) if layout.authority else True)


def fill(layout: Layout) -> None:
    """Make the catalogue, the service user and the tenant; what exists is kept."""
    api = Adapter(session(layout), service_type="identity", interface="public", region_name="RegionOne")
    roles = {role["name"]: role["id"] for role in api.get("/roles").json()["roles"]}
    service_project = _ensure(api, "project", {"name": "service", "domain_id": "default"})
    tenant_project = _ensure(api, "project", {"name": TENANT, "domain_id": "default"})
    for user, project, granted in (
        (config.SERVICE_USER, service_project, ("admin", "service")),
        (TENANT, tenant_project, ("member",)),
    ):
        account = {"name": user, "password": layout.password, "domain_id": "default", "default_project_id": project}
        user_id = _ensure(api, "user", account)
        for role in granted:
            api.put(f"/projects/{project}/users/{user_id}/roles/{roles[role]}")
    have = {entry["type"]: entry["id"] for entry in api.get("/services").json()["services"]}
    for name, (service_type, service_name, path) in CATALOGUE.items():
        service_id = have.get(service_type) or _ensure(api, "service", {"name": service_name, "type": service_type})
        if not api.get(f"/endpoints?service_id={service_id}").json()["endpoints"]:
            endpoint = {"service_id": service_id, "interface": "public", "url": layout.url(name) + path}
            api.post("/endpoints", json={"endpoint": {**endpoint, "region_id": "RegionOne"}})
        if service_type == "compute":
            _register_limits(api, service_id)


def make_project(layout: Layout, name: str) -> str:
    """Make a project in which the administrator is one, and return its UUID."""
    api = Adapter(session(layout), service_type="identity", interface="public", region_name="RegionOne")
    project_id = _ensure(api, "project", {"name": name, "domain_id": "default"})
    role = api.get("/roles?name=admin").json()["roles"][0]["id"]
    user = api.get("/users?name=admin").json()["users"][0]["id"]
    api.put(f"/projects/{project_id}/users/{user}/roles/{role}")
    return project_id


def delete_project(layout: Layout, project_id: str) -> None:
    """Delete a project."""
    api = Adapter(session(layout), service_type="identity", interface="public", region_name="RegionOne")
    api.delete(f"/projects/{project_id}")


def _register_limits(api: Adapter, service_id: str) -> None:
    have = api.get(f"/registered_limits?service_id={service_id}").json()["registered_limits"]
    there = {limit["resource_name"] for limit in have}
    missing = [
        {"service_id": service_id, "region_id": "RegionOne", "resource_name": name, "default_limit": limit}
        for name, limit in LIMITS.items()
        if name not in there
    ]
    if missing:
        api.post("/registered_limits", json={"registered_limits": missing})


def _ensure(api: Adapter, noun: str, body: dict[str, str]) -> str:
    try:
        return str(api.post(f"/{noun}s", json={noun: body}).json()[noun]["id"])
    except exceptions.Conflict:
        return str(api.get(f"/{noun}s?name={body['name']}").json()[f"{noun}s"][0]["id"])
