"""Memory with somebody's pages stays out of core dumps."""

import mmap


def keep_from_dumps(mapping: mmap.mmap) -> None:
    """Leave a mapping with somebody's pages out of core dumps of this process; raises OSError."""
    mapping.madvise(mmap.MADV_DONTDUMP)
