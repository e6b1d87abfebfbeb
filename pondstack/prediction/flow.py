"""The decision flow of Pond 4.4 for one VM that is about to start, on figures that both models gave ahead. Pure.

    history? -> insensitive? -> all but a minimum local share from the pool
             -> else what stays untouched from the pool, as a zNUMA node
             -> nothing is known of it: what decides without a model

Two things differ from the paper. An insensitive VM keeps a minimum of local memory, where the paper gives it none: its
CPUs need a NUMA node with memory. And no model is asked here: it was asked for every project and size (table.py), so
that nova-scheduler needs neither the models nor a call.
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from pondstack.domain.share import capped_mib, kept_local_mib, untouched_mib
from pondstack.domain.sizing import Fallback, Features, Split, SplitPredictor
from pondstack.prediction.risk import Risk, Risks, Slowdown, Untouched
from pondstack.prediction.untouched_table import COLD, size_key
from pondstack.prediction.untouched_table import SOURCE as UNTOUCHED

KIND = "flow"
"""Kind of the predictor that a table of pondstack.prediction.table describes."""
INSENSITIVE = "insensitive"
"""Source of a split that the model of latency sensitivity decided."""
NOTHING: Mapping[str, Any] = {"version": "", "projects": {}}
"""What a model says that does not serve."""
_NO_MORE = "model {} may risk no more instances now"

Allowed = Callable[[str], bool]
"""Whether one more VM may get pool memory by a model of this version; "" is no model."""


class Flow:
    """Decides by a table of pondstack.prediction.table; what it does not know, `otherwise` does."""

    def __init__(self, about: Mapping[str, Any], otherwise: SplitPredictor, allowed: Allowed = lambda _: True) -> None:
        """Raises KeyError, TypeError, ValueError for what is no table."""
        self._otherwise = otherwise
        self._allowed = allowed
        self._min_local_percent = int(about["min_local_percent"])
        self._risks = Risks(about["points"])
        self._untouched: Mapping[str, Any] = about["untouched"] or NOTHING
        self._sensitivity: Mapping[str, Any] = about["sensitivity"] or NOTHING

    def within(self, allowed: Allowed) -> "Flow":
        """Return the same flow, within what the models may still risk."""
        bound = copy(self)
        bound._allowed = allowed
        return bound

    def predict(self, features: Features, slice_mib: int) -> Split:
        """Return the split: whole slices, no more than the flavor's cap."""
        risk = self._risks.of(features.specs.pdm_percent)
        history = self._history(features)
        if history is not None and risk.is_insensitive(history):
            most = self._all_but_minimum(features, slice_mib, history, risk)
            if most.pool_mib:
                return most if self._allowed(most.model_version) else self._not_risked(features, slice_mib, most, risk)
        return self._sensitive(features, slice_mib, risk)

    def _sensitive(self, features: Features, slice_mib: int, risk: Risk) -> Split:
        untouched = self._left_untouched(features)
        if untouched is not None:
            return self._znuma(features, slice_mib, untouched, risk)
        return self._unknown(features, slice_mib)

    def _not_risked(self, features: Features, slice_mib: int, wanted: Split, risk: Risk) -> Split:
        """Return what else there is for a VM that is insensitive; where it is nothing, the budget is why."""
        found = self._sensitive(features, slice_mib, risk)
        return found if found.pool_mib else _all_local(features, _NO_MORE.format(wanted.model_version))

    def _history(self, features: Features) -> Slowdown | None:
        """Return what is known of earlier VMs of the same project and size; None: no history with counters."""
        found = self._sensitivity["projects"].get(features.project_id, {}).get(_size(features))
        return None if found is None else Slowdown(*found)

    def _left_untouched(self, features: Features) -> Untouched | None:
        """Return what the model predicts for the project and size, or for the size alone; None: it says nothing."""
        projects, size = self._untouched["projects"], _size(features)
        found = projects.get(features.project_id, {}).get(size) or projects.get(COLD, {}).get(size)
        return None if found is None else Untouched(*found)

    def _all_but_minimum(self, features: Features, slice_mib: int, history: Slowdown, risk: Risk) -> Split:
        local_mib = kept_local_mib(features.memory_mib, self._min_local_percent, slice_mib)
        given = _slices(features, features.memory_mib - local_mib, slice_mib)
        version, pdm = self._sensitivity["version"], features.specs.pdm_percent
        reason = (
            f"model {version}: {history.percent:.2f} % slowdown predicted by {history.instances} instances of its "
            f"project and size, insensitive up to {risk.threshold:.2f} % at a PDM of {pdm} %"
        )
        return Split(
            features.memory_mib - given,
            given,
            source=INSENSITIVE,
            confidence=1.0 - risk.false_positives / 100,
            reason=reason,
            model_version=version,
            inputs={
                "pdm": pdm,
                "history": history.instances,
                "slowdown": history.percent,
                "threshold": risk.threshold,
            },
        )

    def _znuma(self, features: Features, slice_mib: int, untouched: Untouched, risk: Risk) -> Split:
        margin = risk.margin(untouched)
        share = untouched.less(margin, features.memory_mib)
        given = _slices(features, untouched_mib(share, features.memory_mib, slice_mib), slice_mib)
        version, pdm = self._untouched["version"], features.specs.pdm_percent
        if given and not self._allowed(version):
            return _all_local(features, _NO_MORE.format(version))
        return Split(
            features.memory_mib - given,
            given,
            source=UNTOUCHED,
            confidence=1.0 - risk.over_predictions / 100,
            reason=f"model {version}: {untouched.describe(margin, features.memory_mib)}",
            model_version=version,
            inputs={"pdm": pdm, "history": untouched.records, "share": untouched.share, "margin": margin},
        )

    def _unknown(self, features: Features, slice_mib: int) -> Split:
        found = self._otherwise.predict(features, slice_mib)
        if found.pool_mib and not self._allowed(""):
            return _all_local(features, "no instance is risked while the models' budget is used up")
        return found


def _size(features: Features) -> str:
    return size_key(features.memory_mib, features.vcpus)


def _slices(features: Features, wanted_mib: int, slice_mib: int) -> int:
    """Return whole slices within what is wanted and the flavor's cap."""
    return capped_mib(wanted_mib, features.memory_mib, features.specs.max_pool_percent, slice_mib)


def _all_local(features: Features, why: str) -> Split:
    """Return all local memory, of no model: it is not one of those that the budget is a share of."""
    reason = f"all local: {why}; pondstack-manage model show tells of the budget"
    return Split(features.memory_mib, 0, Fallback.MODEL_BUDGET, 1.0, reason)
