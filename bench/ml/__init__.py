"""Prediction models on traces: error against gain, with intervals, beside the rules that need no model."""
