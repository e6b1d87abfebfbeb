"""What hosts and pools that are gone left behind: in the ledger, when nobody removed them, and in Placement.

Nothing here is mended without an operator's word: what is off for a while looks the same.
"""

from collections.abc import Iterable

from pondstack.clients.placement import Placement
from pondstack.controller.lending import inventory as lending
from pondstack.controller.pool.inventory import PROVIDER_PREFIX, aggregate_uuid
from pondstack.controller.reconcile import actions
from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.units import SHARING_TRAIT


def find_leftovers(placement: Placement, observation: Observation) -> list[Finding]:
    """Return what was left behind, with the actions that remove it; raises Unavailable."""
    return [*_hosts(placement, observation), *_members(placement, observation), *_providers(placement, observation)]


def _hosts(placement: Placement, observation: Observation) -> Iterable[Finding]:
    for name in observation.rack.hosts:
        if not observation.host_up(name) and placement.provider_by_name(name) is None:
            detail = "its agent is silent, and Placement has no provider of it: its compute service was deleted"
            action = actions.RemoveHost(name)
            yield Finding("host_left_behind", Severity.WARNING, f"host {name}", detail, action, operator=True)


def _members(placement: Placement, observation: Observation) -> Iterable[Finding]:
    aggregates = {aggregate_uuid(uuid): (uuid, f"pool {uuid}") for uuid in observation.rack.pools}
    aggregates[lending.AGGREGATE] = (lending.PROVIDER, "the lenders")
    for aggregate, (owner, about) in aggregates.items():
        for provider, name in placement.members(aggregate).items():
            if provider != owner and name not in observation.rack.hosts:
                detail = f"it is in the aggregate {aggregate} of {about}, and the ledger knows no such host"
                action = actions.LeaveAggregate(name, provider, aggregate)
                subject = f"provider {name} in {aggregate}"
                yield Finding("member_left_behind", Severity.WARNING, subject, detail, action, operator=True)


def _providers(placement: Placement, observation: Observation) -> Iterable[Finding]:
    known = {*observation.rack.pools, lending.PROVIDER}
    for provider, name in placement.with_trait(SHARING_TRAIT).items():
        if provider not in known and name.startswith(PROVIDER_PREFIX):
            detail = "it is of a pool that the ledger does not know; make sure that no device of it comes back"
            action = actions.RemoveProvider(provider)
            subject = f"provider {name} ({provider})"
            yield Finding("provider_left_behind", Severity.WARNING, subject, detail, action, operator=True)
