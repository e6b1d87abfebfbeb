"""Which guests cannot be migrated live for where their memory is: what Nova refuses by, and plans are made by. Pure.

What it cannot tell is how a host is configured ([data_plane] handover_address, post-copy), and what an agent finds.
"""

from collections.abc import Collection

from pondstack.domain.backing import SHARED, UNKNOWN
from pondstack.domain.sizing import PondSpecs

SWAP_STAYS = (
    "a server with a swap disk in remote memory cannot be migrated live: its pages are in its host's mirror, and with "
    "lenders that serve this host only; migrate it cold"
)
FILE_STAYS = (
    "a server with remote memory whose pool memory is a file is not migrated live: QEMU would leave both out of what "
    "it sends, and the content of its pool memory would be lost; migrate it cold"
)
UNKNOWN_STAYS = (
    "a server with remote memory is not migrated live while its agent does not say whether its pool memory is a file; "
    "upgrade the agent, or migrate it cold"
)


def may_stay(specs: PondSpecs) -> bool:
    """Whether it has to be asked where a guest's pool memory is; one without remote memory can always be moved."""
    return bool(specs.remote_mib or specs.swap_mib)


def why_it_stays(specs: PondSpecs, backings: Collection[str]) -> str:
    """Return why a guest is not migrated live, "": it may be. `backings`: the kinds of what its pool memory is.

    QEMU's x-ignore-shared leaves out all shared files, or none: a guest's remote memory is left out, since the data
    planes hand it over; slices of the pool are others at the destination, into which they have to be copied.
    """
    if specs.swap_mib:
        return SWAP_STAYS
    if specs.remote_mib and SHARED & set(backings):
        return FILE_STAYS
    if specs.remote_mib and UNKNOWN in backings:
        return UNKNOWN_STAYS
    return ""
