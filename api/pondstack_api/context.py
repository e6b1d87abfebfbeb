"""Who asks: the request's context, from the headers that the token check left."""

from typing import Any

from oslo_context import context
from oslo_policy import policy as oslo_policy

from pondstack_api.errors import Forbidden


class RequestContext(context.RequestContext):
    """oslo.context's, with the policy check."""

    enforcer: oslo_policy.Enforcer | None = None

    def can(self, rule: str, target: dict[str, Any] | None = None) -> bool:
        """Return whether the policy lets this caller do `rule` to `target` (default: the caller's own project)."""
        if self.enforcer is None:
            raise RuntimeError(
                "the context has no policy enforcer: it was not made by pondstack_api.middleware.context"
            )
        target = {"project_id": self.project_id} if target is None else target
        return bool(self.enforcer.authorize(rule, target, self))

    def require(self, rule: str, target: dict[str, Any] | None = None) -> None:
        """Raise Forbidden unless the policy lets this caller do `rule`."""
        if not self.can(rule, target):
            roles = ", ".join(sorted(self.roles)) or "none"
            raise Forbidden(f"policy {rule} does not allow this with the roles: {roles}; ask your cloud's operator")
