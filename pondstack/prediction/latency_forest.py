"""Random forests by scikit-learn: the one file that imports it, and what converts them to ONNX (Pond 5)."""

import math
from collections.abc import Sequence
from typing import Any

from pondstack.prediction.counters import selected

SETTINGS: dict[str, Any] = {
    "n_estimators": 150,
    "min_samples_leaf": 2,
    "max_features": 0.5,
    "random_state": 7,
    "n_jobs": 1,
}
OPSET = 15


class Forest:
    """A trained forest; it predicts the logarithm (log1p) of the slowdown, so that small ones count."""

    def __init__(self, trees: Any, features: Sequence[str]) -> None:
        self._trees = trees
        self.features = tuple(features)

    def slowdowns(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the slowdown in percent; see pondstack.prediction.latency.LatencyModel."""
        if not rows:
            return []
        import numpy

        known = numpy.asarray(selected(self.features, rows), dtype=numpy.float32)
        return [math.expm1(float(value)) for value in self._trees.predict(known)]

    def blob(self) -> bytes:
        """Return the same as an ONNX model of one input, which has the features in their order."""
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import FloatTensorType

        inputs = [("features", FloatTensorType([None, len(self.features)]))]
        model = convert_sklearn(self._trees, "latency", initial_types=inputs, target_opset=OPSET)
        return bytes(model.SerializeToString())


def train(rows: Sequence[Sequence[float]], slowdowns: Sequence[float], features: Sequence[str]) -> Forest:
    """Train on rows of COUNTERS; repeatable. Raises ImportError without the extra `ml`."""
    import numpy
    from sklearn.ensemble import RandomForestRegressor

    trees = RandomForestRegressor(**SETTINGS)
    known = numpy.asarray(selected(features, rows), dtype=numpy.float32)
    trees.fit(known, numpy.log1p(numpy.maximum(numpy.asarray(slowdowns, dtype=numpy.float64), 0.0)))
    return Forest(trees, features)
