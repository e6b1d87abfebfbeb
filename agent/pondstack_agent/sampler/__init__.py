"""Samples for a model of latency sensitivity: small kernels in local and in slower memory, counted and timed."""
