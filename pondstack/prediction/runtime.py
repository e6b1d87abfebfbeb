"""Models in ONNX by onnxruntime: the one file that imports it."""

from collections.abc import Sequence
from importlib import util

from pondstack.domain.errors import BadRequest

PACKAGES = ("numpy", "onnxruntime")


def missing() -> list[str]:
    """Return the packages of the extra `ml` that running a model needs and that are not installed."""
    return [name for name in PACKAGES if util.find_spec(name) is None]


class OnnxModel:
    """One model that runs in this process, on one thread. Thread-safe."""

    def __init__(self, blob: bytes, features: Sequence[str]) -> None:
        """Raises BadRequest for what is no model, or one of other features than `features`."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise BadRequest(f"this is no ONNX model that onnxruntime takes: {error}; train again") from error
        (entry,) = self._session.get_inputs()
        self._name = entry.name
        if entry.shape[-1] != len(features):
            raise BadRequest(f"the model takes {entry.shape[-1]} features, and {len(features)} are known; train again")

    def predict(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the prediction for each row of features."""
        if not rows:
            return []
        import numpy

        (values,) = self._session.run(None, {self._name: numpy.asarray(rows, dtype=numpy.float32)})
        return [float(value) for value in values.ravel()]
