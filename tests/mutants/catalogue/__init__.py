"""The planted faults, each with the tests that must catch it. A fault of a review that nothing caught comes here, too.

Two faults are not here because the code does the same with them: `any` or `all` of an allocation's slices in
Slices.release (they change together), and a RELEASING record that is settled (only RELEASED ones are reported).
"""

from tests.mutants.catalogue import (
    agent,
    api,
    bench_extension,
    by_reference,
    controller,
    corrections,
    data_plane,
    domain,
    election,
    escrow,
    extension,
    handover,
    host_slices,
    identity,
    ledger,
    lending,
    nova,
    privilege,
    qos,
    rdma,
    remote_guests,
    swap_disks,
    untrusted,
)

MUTANTS = (
    *domain.MUTANTS,
    *ledger.MUTANTS,
    *lending.MUTANTS,
    *escrow.MUTANTS,
    *controller.MUTANTS,
    *election.MUTANTS,
    *extension.MUTANTS,
    *handover.MUTANTS,
    *by_reference.MUTANTS,
    *agent.MUTANTS,
    *rdma.MUTANTS,
    *nova.MUTANTS,
    *api.MUTANTS,
    *host_slices.MUTANTS,
    *qos.MUTANTS,
    *corrections.MUTANTS,
    *data_plane.MUTANTS,
    *identity.MUTANTS,
    *privilege.MUTANTS,
    *remote_guests.MUTANTS,
    *swap_disks.MUTANTS,
    *untrusted.MUTANTS,
    *bench_extension.MUTANTS,
)
