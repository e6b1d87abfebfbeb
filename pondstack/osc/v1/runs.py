"""Neighbours that are alike, as one row."""

from collections.abc import Iterable, Iterator
from typing import Any

from pondstack.osc.v1.columns import span


def joined(items: Iterable[dict[str, Any]], same: tuple[str, ...], title: str) -> Iterator[dict[str, Any]]:
    """Join items that follow each other by `index` and are equal in `same`: `title` is then `0-1`.

    The input is ordered by index. An older API leaves some of `same` out.
    """
    run: list[dict[str, Any]] = []
    for item in items:
        if run and (item["index"] != run[-1]["index"] + 1 or any(item.get(key) != run[-1].get(key) for key in same)):
            yield _one(run, title)
            run = []
        run.append(item)
    if run:
        yield _one(run, title)


def each(items: Iterable[dict[str, Any]], title: str) -> Iterator[dict[str, Any]]:
    """Return each item as a row of its own, in the form that `joined` gives."""
    return (_one([item], title) for item in items)


def _one(run: list[dict[str, Any]], title: str) -> dict[str, Any]:
    return {**run[0], title: span(run[0]["index"], len(run))}
