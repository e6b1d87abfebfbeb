"""Seeded fuzzers: one module per kind of thing that others can write to, and what they share; no test of pytest."""
