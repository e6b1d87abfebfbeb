"""Reading Placement's claims on our pools, for the reconciler."""

from collections.abc import Iterable, Mapping

from pondstack.clients.placement import Placement
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.reconcile.holders import Claims
from pondstack.domain.rack import RackView
from pondstack.domain.remote_share import MIRROR_CLASS
from pondstack.domain.units import RESOURCE_CLASS


def read_claims(
    placement: Placement, view: RackView, hosts: Iterable[str], remote: RemoteClaims | None = None
) -> Claims | None:
    """Return the claims on all pools from `hosts`, and those on lent memory if `remote` reads them; raises Unavailable.

    None when Placement does not have a pool's provider: it was lost or is being rebuilt, and proves nothing.
    """
    pools: dict[str, dict[str, int]] = {}
    for uuid in view.pools:
        held = placement.allocations_of(uuid)
        if held is None:
            return None
        pools[uuid] = {consumer: amounts.get(RESOURCE_CLASS, 0) for consumer, amounts in held.items()}
    before = _lent(view, remote)
    held_by_host = {host: _held(placement, view, host) for host in hosts}
    there = {host: held for host, held in held_by_host.items() if held is not None}
    # A migration that begins or is undone meanwhile has its claim on lent memory in one of both looks.
    after = _lent(view, remote)
    return Claims(
        pools,
        {host: _amounts(held or {}, "MEMORY_MB") for host, held in held_by_host.items()},
        None if before is None or after is None else {**before, **after},
        {host: _amounts(held, MIRROR_CLASS) for host, held in there.items()},
    )


def _lent(view: RackView, remote: RemoteClaims | None) -> Mapping[str, int] | None:
    return None if remote is None or not view.lent.lenders else remote.by_consumer()


def _held(placement: Placement, view: RackView, host: str) -> Mapping[str, Mapping[str, int]] | None:
    report = view.hosts.get(host)
    provider = report.provider_uuid if report else None
    held = placement.allocations_of(provider) if provider else None
    if held is None:
        # Not looked up yet, or Nova made the host's provider anew.
        provider = placement.provider_by_name(host)
        held = placement.allocations_of(provider) if provider else None
    return held


def _amounts(held: Mapping[str, Mapping[str, int]], resource_class: str) -> Mapping[str, int]:
    return {consumer: amounts.get(resource_class, 0) for consumer, amounts in held.items()}
