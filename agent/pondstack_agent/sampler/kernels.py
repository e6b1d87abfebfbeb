"""Small real kernels, each bound by another part of the machine; they work on memory of an arena, on one CPU.

A kernel is prepared once and then run for a number of units; it returns a figure that depends on all that it read, so
that a wrong result is seen.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from pondstack_agent.sampler.arena import LINE, Arena

SEED = 7
BATCH = 1 << 16
"""Elements that are handled at once: what is between them stays in the caches."""

Run = Callable[[int], int]
"""Works for some units; returns a checksum."""
Kernel = Callable[[Arena, int], Run]
"""Prepares on an arena of at least that many bytes."""


def _rng() -> Any:
    import numpy

    return numpy.random.default_rng(SEED)


def pointer_chase(arena: Arena, size: int) -> Run:
    """One dependent load after the other, around one cycle through all cache lines. Unit: 10,000 loads."""
    import numpy

    lines, words = size // LINE, LINE // 8
    array = arena.array(lines * words, "int64")
    order = _rng().permutation(lines)
    array[order * words] = numpy.roll(order, -1) * words
    view = arena.view()

    def run(units: int) -> int:
        place = 0
        for _ in range(units * 10_000):
            place = view[place]
        return place

    return run


def stream(arena: Arena, size: int) -> Run:
    """a = b + 3 c, in order: bandwidth, prefetched. Unit: one batch."""
    import numpy

    count = max(BATCH, size // 24)
    a, b, c = (arena.array(count, "float64") for _ in range(3))
    b[:], c[:] = numpy.arange(count) % 97, 2.0
    parts = count // BATCH

    def run(units: int) -> int:
        for unit in range(units):
            part = slice(unit % parts * BATCH, unit % parts * BATCH + BATCH)
            numpy.multiply(c[part], 3.0, out=a[part])
            numpy.add(a[part], b[part], out=a[part])
        return int(a[:BATCH].sum())

    return run


def hash_join(arena: Arena, size: int) -> Run:
    """Probes of a table of buckets: independent loads at random places. Unit: a batch of probes."""
    import numpy

    count = max(1024, size // 24)
    buckets = count
    starts, keys, values = (arena.array(count, "int64") for _ in range(3))
    drawn = _rng().permutation(count).astype("int64") * 7 + 1
    hashed = drawn * 2654435761 % buckets
    order = numpy.argsort(hashed, kind="stable")
    keys[:], values[:] = drawn[order], drawn[order] % 1000
    starts[:] = numpy.searchsorted(hashed[order], numpy.arange(buckets))
    probes = _rng().choice(drawn, BATCH * 4)

    def run(units: int) -> int:
        total = 0
        for unit in range(units):
            wanted = probes[unit % 4 * BATCH : unit % 4 * BATCH + BATCH]
            place = starts[wanted * 2654435761 % buckets]
            hit = keys[place] == wanted
            total += int(values[place[hit]].sum())
        return total

    return run


def graph(arena: Arena, size: int) -> Run:
    """Rounds of PageRank over a random graph whose nodes differ in degree: gathers by index. Unit: a batch of edges."""
    import numpy

    edges = max(BATCH, size // 6 // BATCH * BATCH)
    nodes = max(1024, edges // 8)
    sources = arena.array(edges, "int32")
    ranks = arena.array(nodes, "float64")
    sources[:] = (_rng().random(edges) ** 2 * nodes).astype("int32")
    ranks[:] = 1.0 / nodes
    parts, degree = edges // BATCH, 8

    def run(units: int) -> int:
        for unit in range(units):
            part = sources[unit % parts * BATCH : unit % parts * BATCH + BATCH]
            sums = numpy.take(ranks, part).reshape(-1, degree).sum(axis=1)
            first = unit % parts * (BATCH // degree) % max(1, nodes - len(sums))
            ranks[first : first + len(sums)] = 0.15 / nodes + 0.85 * sums / degree
        return int(ranks.sum() * 1e9)

    return run


def sort(arena: Arena, size: int) -> Run:
    """Sorts copies of a part of an array in place. Unit: one batch."""
    count = max(BATCH * 2, size // 8 // BATCH * BATCH)
    array = arena.array(count, "int64")
    array[:] = _rng().integers(0, 1 << 40, count)
    half = count // 2

    def run(units: int) -> int:
        copied = array[half:]
        parts = max(1, half // BATCH)
        for unit in range(units):
            first = unit % parts * BATCH
            copied[first : first + BATCH] = array[first : first + BATCH]
            copied[first : first + BATCH].sort()
        return int(copied[0])

    return run


def compression(arena: Arena, size: int) -> Run:
    """Compresses pieces of text-like data, in order: bound by the core. Unit: 64 KiB."""
    count = max(BATCH * 2, size // BATCH * BATCH)
    data = arena.array(count, "uint8")
    data[:] = _rng().integers(97, 105, count)
    parts = count // BATCH

    def run(units: int) -> int:
        total = 0
        for unit in range(units):
            first = unit % parts * BATCH
            total += len(zlib.compress(data[first : first + BATCH], 1))
        return total

    return run


def key_value(arena: Arena, size: int) -> Run:
    """Reads rows of 64 bytes by keys of which few are asked for often, and updates some. Unit: 4,096 requests."""
    import numpy

    batch = 4096
    rows = max(1024, size // LINE)
    table = arena.array(rows * 8, "int64").reshape(rows, 8)
    table[:] = numpy.arange(rows)[:, None]
    rng = _rng()
    order = rng.permutation(rows)
    keys = order[(rng.random(batch * 64) ** 4 * rows).astype("int64")]

    def run(units: int) -> int:
        total = 0
        for unit in range(units):
            wanted = keys[unit % 64 * batch : unit % 64 * batch + batch]
            total += int(table[wanted].sum())
            table[wanted[: batch // 16], 7] += 1
        return total

    return run


KERNELS: Mapping[str, Kernel] = {
    "pointer-chase": pointer_chase,
    "stream": stream,
    "hash-join": hash_join,
    "graph": graph,
    "sort": sort,
    "compression": compression,
    "key-value": key_value,
}
