"""Numbers that look random, from a row's number and a seed: the same in every version of polars, in any order of rows.

The function is SplitMix64 (Steele, Lea and Flood, OOPSLA'14).
"""

import polars

_STEP = 0x9E3779B97F4A7C15
_MIXERS = ((1 << 30, 0xBF58476D1CE4E5B9), (1 << 27, 0x94D049BB133111EB), (1 << 31, 1))
_BITS = 1 << 64


def uniform(row: polars.Expr, seed: int) -> polars.Expr:
    """Return a number from 0 to 1 for each row."""
    mixed = (row.cast(polars.UInt64) + _word(1 + (seed << 32))) * _word(_STEP)
    for shift, factor in _MIXERS:
        mixed = (mixed ^ (mixed // _word(shift))) * _word(factor)
    return mixed.cast(polars.Float64) / _BITS


def _word(value: int) -> polars.Expr:
    return polars.lit(value % _BITS, polars.UInt64)
