"""Which servers of a replay have no split, and why: by what nova-scheduler told that it placed each of them with."""

from collections import Counter
from collections.abc import Callable, Sequence

from bench.player import Outcome
from pondstack.domain.sizing import NO_SPLIT, Fallback

NOT_TOLD = "not_told"
"""Nobody told the controller, and the server has less pool memory than the policy says."""
NO_ROOM = "no room for it in a pool"

Look = Callable[[str], str | None]
"""Returns the source of a server's split; None for one that nobody told of."""


def reasons(
    placed: Sequence[Outcome], due_mib: Callable[[Outcome], int], look: Look
) -> tuple[Counter[str], Counter[str]]:
    """Return how many have no split, by reason, and how many got less by a decision, by reason.

    No split: all local because of time, staleness or a missing view; whether there was a share to lose or not.
    """
    without: Counter[str] = Counter()
    less: Counter[str] = Counter()
    for item in placed:
        source = look(item.server)
        short = item.pool_mib < due_mib(item)
        if source in NO_SPLIT or (source is None and short):
            without[source or NOT_TOLD] += 1
        elif short:
            less[str(source) if source in list(Fallback) else NO_ROOM] += 1
    return without, less
