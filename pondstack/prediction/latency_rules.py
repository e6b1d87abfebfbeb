"""Predictors of slowdown that need no forest: a weighed sum of stall components, and single counters.

The sum is in the manner of CAMP (ASPLOS'26): the slowdown of demand loads, of stores and of prefetches each grows with
what a run in local memory already waits for. CAMP takes the weights from micro-benchmarks; here they are fitted to the
training workloads, and none is below zero.
"""

import json
from collections.abc import Mapping, Sequence

from pondstack.domain.errors import BadRequest
from pondstack.domain.telemetry import Metric
from pondstack.prediction.counters import selected

DEMAND, STORES, OVERLAP, TRAFFIC = (
    str(Metric.DRAM_BOUND_PERCENT),
    str(Metric.STORE_BOUND_PERCENT),
    str(Metric.L3_MISS_PARALLELISM),
    str(Metric.READ_MIB_PER_CPU_SECOND),
)
COMPONENTS: tuple[str, ...] = (DEMAND, STORES, OVERLAP, TRAFFIC)
"""Counters that the sum needs."""
ROUNDS = 500
FALLING = frozenset(map(str, (Metric.INSTRUCTIONS_PER_CYCLE, Metric.RETIRING_PERCENT)))
"""Counters of which more means less sensitive."""


class WeighedSum:
    """Slowdown = sum of weight * component. The blob is JSON: components by name, with their weights."""

    features = COMPONENTS

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = dict(weights)

    @classmethod
    def load(cls, blob: bytes) -> "WeighedSum":
        """Return a stored one; raises BadRequest for what is none."""
        try:
            weights = {str(name): float(value) for name, value in json.loads(blob).items()}
        except (ValueError, AttributeError, TypeError) as error:
            raise BadRequest(f"these are no weights of an analytic model: {error}; train again") from error
        if set(weights) != set(_terms([1.0] * len(COMPONENTS))):
            raise BadRequest(f"an analytic model of other components ({', '.join(sorted(weights))}); train again")
        return cls(weights)

    def slowdowns(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the slowdown in percent; see pondstack.prediction.latency.LatencyModel."""
        known = map(_terms, selected(self.features, rows))
        return [sum(self._weights[name] * value for name, value in terms.items()) for terms in known]

    def blob(self) -> bytes:
        """Return what load() takes."""
        return json.dumps(self._weights, sort_keys=True).encode()


def _terms(values: Sequence[float]) -> dict[str, float]:
    demand, stores, overlap, traffic = values
    return {
        "demand": demand,
        "demand by parallelism": demand / max(1.0, overlap),
        "stores": stores,
        "traffic": traffic / 1024,
    }


def fit(rows: Sequence[Sequence[float]], slowdowns: Sequence[float]) -> WeighedSum:
    """Return the weights of the least squared error, none below zero (coordinate descent)."""
    terms = [_terms(values) for values in selected(COMPONENTS, rows)]
    weights = dict.fromkeys(terms[0], 0.0)
    rest = [max(0.0, value) for value in slowdowns]
    for _ in range(ROUNDS):
        for name in weights:
            above = sum(item[name] * value for item, value in zip(terms, rest, strict=True))
            below = sum(item[name] ** 2 for item in terms)
            step = max(-weights[name], above / below) if below else 0.0
            weights[name] += step
            rest = [value - step * item[name] for item, value in zip(terms, rest, strict=True)]
    return WeighedSum(weights)


class SingleCounter:
    """One counter as it is, for thresholds: what a heuristic would look at (Pond 6.4.1). Its figure is no slowdown."""

    def __init__(self, name: str) -> None:
        self.features = (name,)
        self._sign = -1.0 if name in FALLING else 1.0

    def slowdowns(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return a figure that ascends with the sensitivity that the counter tells of."""
        return [self._sign * value for (value,) in selected(self.features, rows)]
