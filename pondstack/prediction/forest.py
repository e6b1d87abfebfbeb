"""Gradient boosting by LightGBM: the one file that imports it, and what converts its models to ONNX."""

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

SETTINGS: dict[str, Any] = {
    "objective": "quantile",
    "num_leaves": 4,
    "learning_rate": 0.05,
    "min_data_in_leaf": 40,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "feature_fraction": 0.7,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 7,
    "verbose": -1,
}
"""Small trees, many of them: clouds have few projects, and large trees learn those by heart."""
TREES = 200
OPSET = 15


class Forest:
    """A trained quantile regression."""

    def __init__(self, booster: Any, width: int) -> None:
        self._booster, self._width = booster, width

    def predict(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the quantile for each row of features; NaN is a feature that is not known."""
        if not rows:
            return []
        import numpy

        return [float(value) for value in self._booster.predict(numpy.asarray(rows, dtype=numpy.float32))]

    def to_onnx(self) -> bytes:
        """Return the same as an ONNX model of one input of `width` features."""
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        inputs = [("features", FloatTensorType([None, self._width]))]
        model = onnxmltools.convert_lightgbm(
            self._booster, name="untouched", initial_types=inputs, target_opset=OPSET, zipmap=False
        )
        return bytes(model.SerializeToString())


def train(rows: Sequence[Sequence[float]], labels: Sequence[float], quantile: float, **settings: object) -> Forest:
    """Train on rows of features; repeatable; `settings`: other ones than SETTINGS. Raises ImportError without `ml`."""
    import numpy

    lightgbm = _lightgbm()
    data = lightgbm.Dataset(numpy.asarray(rows, dtype=numpy.float32), numpy.asarray(labels, dtype=numpy.float64))
    booster = lightgbm.train({**SETTINGS, **settings, "alpha": quantile}, data, num_boost_round=TREES)
    return Forest(booster, len(rows[0]))


def _lightgbm() -> ModuleType:
    """Import LightGBM without scikit-learn, of whose classes none is used here: two seconds of each training."""
    hidden = "sklearn" not in sys.modules
    if hidden:
        sys.modules["sklearn"] = None  # type: ignore[assignment]
    try:
        import lightgbm
    finally:
        if hidden:
            del sys.modules["sklearn"]
    return lightgbm
