"""Policy in code, one file per noun; entry point oslo.policy.policies."""

from oslo_policy import policy

from pondstack_api.policies import (
    agent,
    allocation,
    audit,
    base,
    buffer,
    controller,
    history,
    host,
    leader,
    lender,
    loan,
    mitigation,
    model,
    performance,
    plan,
    planner_job,
    pool,
    project,
    qos,
    share,
    slice,
    split,
    telemetry,
)


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules."""
    rack = (
        base,
        pool,
        slice,
        host,
        agent,
        allocation,
        audit,
        leader,
        controller,
        lender,
        buffer,
        loan,
        plan,
        planner_job,
    )
    guests = (telemetry, split, history, model, project, mitigation, qos, performance, share)
    return [rule for module in (*rack, *guests) for rule in module.RULES]
