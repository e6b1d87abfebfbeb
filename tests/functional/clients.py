"""Our clients of the Nova and the Placement that run in the test's process."""

from typing import Any

from keystoneauth1 import adapter, session, token_endpoint

from pondstack.clients.nova import MICROVERSION, Nova
from pondstack.clients.placement import Placement


def nova_of(url: str, *, user: str, project: str, roles: str) -> Nova:
    """Return a client of the API at `url`, for a user of a project with roles, between commas."""
    who = {"X-Auth-User": user, "X-User-Id": user, "X-Auth-Project-Id": project, "X-Roles": roles}
    http = adapter.Adapter(
        session.Session(auth=token_endpoint.Token(url, "token")),
        endpoint_override=url,
        default_microversion=MICROVERSION,
        service_type="compute",
        additional_headers=who,
    )
    return Nova(http, http)


def placement_of(fixture: Any) -> Placement:
    """Return an administrator's client of Placement's fixture."""
    admin = session.Session(additional_headers={"x-auth-token": "admin"})
    return Placement(adapter.Adapter(admin, endpoint_override=fixture.endpoint, raise_exc=False))
