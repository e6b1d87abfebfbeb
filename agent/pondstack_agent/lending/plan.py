"""Decisions of a lender: how much may be lent, whether memory is wanted back, and which buffers. Pure; MiB."""

from collections.abc import Sequence

from pondstack_agent.lending.model import Buffer


def lendable_mib(
    available_mib: int,
    reserve_mib: int,
    kept_mib: int,
    promised_mib: int,
    buffer_mib: int,
    left_mib: int | None = None,
) -> int:
    """Return how much more may be lent, in whole buffers (Zombieland 4.3: the free memory, organised in buffers).

    `kept_mib`: what mitigations have reserved and guests may still touch. `promised_mib`: lent already, while its
    pages are counted as available. `left_mib`: what [lending] most_mib leaves, None: there is no bound.
    """
    free = available_mib - reserve_mib - kept_mib - promised_mib
    if left_mib is not None:
        free = min(free, left_mib)
    return max(free, 0) // buffer_mib * buffer_mib


def wanted_back_mib(available_mib: int, reserve_mib: int, pressure_mib: int, lent_mib: int, buffer_mib: int) -> int:
    """Return how much a host under memory pressure wants back, in whole buffers; 0 without pressure."""
    if available_mib >= pressure_mib:
        return 0
    missing = max(reserve_mib - available_mib, buffer_mib)
    return min(-(-missing // buffer_mib) * buffer_mib, lent_mib)


def choose(buffers: Sequence[Buffer], count: int) -> list[int]:
    """Return which buffers a host takes back on its own: those that nobody has first, then the youngest."""
    order = sorted(buffers, key=lambda buffer: (bool(buffer.borrower), -buffer.index))
    return [buffer.index for buffer in order[: max(count, 0)]]
