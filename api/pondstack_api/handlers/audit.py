"""Audits: ledger, Placement, agents and devices compared, now."""

from pondstack_api.policies import audit as policy
from pondstack_api.request import Reply, Request


def create_audit(request: Request) -> Reply:
    """Run an audit; with `repair` what can be explained is mended as well."""
    repair = request.body.get("repair", False)
    if repair:
        request.context.require(policy.REPAIR)
    answer = request.services.controller.audit(repair=repair)
    return Reply(
        {"clean": answer["clean"], "repair": repair, "findings": answer["findings"], "totals": answer["totals"]}
    )
