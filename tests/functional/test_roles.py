"""What the user of [nova] may do in a real Nova, by roles and policy of the installation guide, and without them."""

from pathlib import Path
from typing import Any

import fixtures
import nova.context
import pytest
from nova.tests.fixtures.policy import RealPolicyFixture

from pondstack.clients.nova import Nova
from pondstack.domain.errors import PondError, Unavailable
from tests.functional.base import NovaWithPondstack
from tests.functional.clients import nova_of

POLICY = Path(__file__).resolve().parents[2] / "etc" / "deploy" / "nova-policy.yaml"
GUIDE = ("service", "pondstack")
"""The roles that the guide gives."""


class Policy(RealPolicyFixture):
    """Nova's own defaults, and what a policy file changes of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def _prepare_policy(self) -> None:
        path = Path(self.useFixture(fixtures.TempDir()).path, "policy.yaml")
        path.write_text(self._text)
        self.policy_file = str(path)


class TestRoles(NovaWithPondstack):
    """A server of another project, and a user who is what the guide makes it, or less."""

    def setUp(self) -> None:
        """Boot the server before Nova gets its true policies."""
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch("nova.api.auth.NovaKeystoneContext._create_context", self._context))
        self.server = self.boot(self.flavor())
        self.useFixture(Policy(POLICY.read_text()))

    @staticmethod
    def _context(env: dict[str, Any], **named: Any) -> Any:
        """Make a request's context as Nova does: its policy says who is an administrator."""
        return nova.context.RequestContext(
            env["HTTP_X_AUTH_USER"],
            env["HTTP_X_AUTH_PROJECT_ID"],
            is_admin=None,
            roles=env["HTTP_X_ROLES"].split(","),
            **named,
        )

    def nova_as(self, *roles: str) -> Nova:
        """Return our client for a user with roles in the project `service`."""
        url = self.admin_api.base_url
        return nova_of(url, user="pondstack", project="service", roles=",".join(roles))

    def test_the_guides_roles_suffice_for_each_call(self) -> None:
        """And a server that is gone is one."""
        found = self.nova_as(*GUIDE)
        assert self.server["id"] in {item.instance_uuid for item in next(found.instances())}
        state = found.server(self.server["id"])
        assert state is not None
        assert (state.host in self.hosts, state.running, state.busy) == (True, True, "")
        found.live_migrate(self.server["id"])
        self._wait_for_state_change(self.server, "ACTIVE")
        self._delete_server(self.server)
        assert found.server(self.server["id"]) is None

    def test_without_them_each_call_is_refused(self) -> None:
        """None of them takes a server that is hidden for one that is gone."""
        for roles in (("service",), ("member", "reader"), ("manager", "member", "reader"), ("other",)):
            found = self.nova_as(*roles)
            with pytest.raises(Unavailable):
                next(found.instances())
            with pytest.raises(Unavailable):
                found.server(self.server["id"])
            with pytest.raises(PondError):
                found.live_migrate(self.server["id"])
        assert self.api.get_server(self.server["id"])["OS-EXT-STS:task_state"] is None
