"""Policy in code, one file per noun; entry point oslo.policy.policies."""

from oslo_policy import policy

from pondstack_api.policies import (
    agent,
    allocation,
    audit,
    base,
    buffer,
    controller,
    host,
    leader,
    lender,
    pool,
    slice,
    split,
    telemetry,
)


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules."""
    modules = (base, pool, slice, host, agent, allocation, audit, leader, controller, telemetry, lender, buffer, split)
    return [rule for module in modules for rule in module.RULES]
