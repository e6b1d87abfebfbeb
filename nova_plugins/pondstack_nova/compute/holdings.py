"""Whether a guest has pool memory on this host, for any virt driver: by what Placement holds for it.

Never by its flavor: guests of flavors without `pond:` specs may be pooled as well. A guest that claims none does not
depend on its host's agent; one whose claim nobody can tell stays what it was.
"""

from collections.abc import Mapping
from typing import Any

import nova.context
from keystoneauth1 import exceptions as keystone_exceptions
from nova import exception
from oslo_log import log as logging

from pondstack.domain.errors import Conflict
from pondstack.domain.sizing import given_specs
from pondstack.rpc.wire import Attachment
from pondstack_nova import flavors
from pondstack_nova.compute import claims
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable, unavailable
from pondstack_nova.compute.claims import PoolClaim

LOG = logging.getLogger(__name__)

_NO_PLACEMENT = (keystone_exceptions.ClientException, exception.ConsumerAllocationRetrievalFailed)


class PlacementSilent(PoolMemoryUnavailable):
    """Placement does not say what a guest claims."""


Claim = PoolClaim | claims.Unclaimed | PoolMemoryUnavailable | None
"""What a guest claims of a pool, None: nothing; or why that is not known."""


class PoolMemoryHoldings:
    """Base of PoolMemoryLifecycle: what a guest claims, and what it holds."""

    virtapi: Any

    def __init__(self, virtapi: Any, read_only: bool = False) -> None:
        super().__init__(virtapi, read_only)  # type: ignore[call-arg]
        self.pool_memory = PoolAttachments()
        self._pond_building: dict[str, Attachment | None] = {}

    def _pond_had_pool_memory(self, instance: Any) -> bool | None:
        """Return whether the guest as it was made last on this host had pool memory; None when that is not known."""
        del instance
        return None

    def _pond_node(self) -> tuple[str, str]:
        """Return (provider UUID, hypervisor hostname) of this host; the agent bears the latter name."""
        ((provider_uuid, name),) = self.get_nodenames_by_uuid().items()  # type: ignore[attr-defined]
        return provider_uuid, name

    def _pond_attachment(self, instance: Any) -> Attachment | None:
        """Return what a guest is to be made of on this host; raises PoolMemoryUnavailable.

        Nothing when it claims none, even if its agent holds some yet: a mitigation that is open gives that back.
        """
        if instance.uuid in self._pond_building:
            return self._pond_building[instance.uuid]
        claim = self._pond_claim_or_error(nova.context.get_admin_context(), instance, None, None)
        return None if claim is None else self._pond_held(instance, claim, patient=False)

    def _pond_holds(self, instance: Any) -> bool:
        """Tell whether pages of a running guest may be pool memory, claimed or not; raises PoolMemoryUnavailable."""
        claim = self._pond_claim_or_error(nova.context.get_admin_context(), instance, None, None)
        return self._pond_held(instance, claim, patient=False) is not None

    def _pond_is_local(self, instance: Any) -> bool:
        """Tell whether a guest claims local memory only; raises PoolMemoryUnavailable when nobody knows."""
        claim = self._pond_claim_or_error(nova.context.get_admin_context(), instance, None, None)
        if claim is None or isinstance(claim, PoolClaim):
            return claim is None
        return self._pond_held(instance, claim, patient=False) is None

    def _pond_held(self, instance: Any, claim: Claim, *, patient: bool) -> Attachment | None:
        """Return what a guest with this claim holds here, as far as its agent is to be asked.

        Raises PoolMemoryUnavailable, and `claim` when it is one and nothing else tells how the guest is split.
        """
        host = self._pond_node()[1]
        if claim is None:
            return self.pool_memory.look(host, instance.uuid)
        if isinstance(claim, PlacementSilent) and self._pond_had_pool_memory(instance) is False:
            return None
        if isinstance(claim, claims.Unclaimed):
            present = self.pool_memory.look(host, instance.uuid)
            if present is None and self._pond_had_pool_memory(instance):
                raise unavailable(claim, f"host {host}, consumer {instance.uuid}")
        else:
            present = self.pool_memory.find(host, instance.uuid, patient=patient)
            if present is None and isinstance(claim, Exception):
                raise claim
        if present and isinstance(claim, Exception):
            # A live migration that broke off leaves the claim with the destination; the guest is still ours to restart.
            LOG.warning("Going on with the slices that are there: %s", claim, instance=instance)
        return present

    def _pond_claim_or_error(
        self, context: Any, instance: Any, allocations: Mapping[str, Any] | None, migration: Any
    ) -> Claim:
        """Return what Placement grants the guest on this host, or why that is not known."""
        try:
            return self._pond_claim(context, instance, allocations, migration)
        except (claims.Unclaimed, PoolMemoryUnavailable) as error:
            return error

    def _pond_claim(
        self, context: Any, instance: Any, allocations: Mapping[str, Any] | None, migration: Any = None
    ) -> PoolClaim | None:
        """Return what Placement grants the guest on this host; raises PoolMemoryUnavailable, Unclaimed."""
        provider, host = self._pond_node()
        where = f"host {host}, consumer {instance.uuid}"
        try:
            held = allocations or self._pond_allocations(context, instance.uuid)
            if provider not in held and migration is not None:  # a migration that broke off still holds the source
                held = self._pond_allocations(context, migration.uuid)
        except _NO_PLACEMENT as error:
            details = f"{where}: Placement does not answer: {error}"
            LOG.warning("Pool memory is not known: %s", details)
            raise PlacementSilent(reason="Placement does not answer", details=details) from error
        flavor = instance.flavor
        own_amount = flavors.LOCAL_KEY in (flavor.extra_specs or {})
        try:
            claimed_mib = flavor.memory_mb - given_specs(flavor.extra_specs).disk_mib
            return claims.claim_of(held, provider, claimed_mib, own_amount=own_amount)
        except claims.Unclaimed:
            raise
        except Conflict as error:
            raise unavailable(error, where) from error

    def _pond_allocations(self, context: Any, consumer_uuid: str) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self.virtapi.reportclient.get_allocs_for_consumer(context, consumer_uuid)
        return answer["allocations"]

    def _pond_claim_for_move(self, context: Any, instance: Any, allocs: Mapping[str, Any] | None) -> Claim:
        """Return the claim at the destination, or Unclaimed: then nobody says how the guest is split here."""
        try:
            return self._pond_claim(context, instance, allocs)
        except claims.Unclaimed as error:
            return error
