"""The CPU loads that hosts of a rack play: they share one machine's CPUs, so that no load of their own could differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pondstack_rack import config
from pondstack_rack.layout import Layout

Points = Sequence[tuple[float, float]]
"""Seconds from now, percent; straight lines in between."""


class HostLoad:
    """Writes the file that [telemetry] host_trace_file names."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.host_traces

    def play(self, loads: Mapping[str, Points]) -> None:
        """Have hosts be so busy from now on; others have their own load."""
        new = config.write(self._path.with_suffix(".new"), json.dumps(loads))
        new.replace(self._path)

    def end(self) -> None:
        """Have all hosts be as busy as they are."""
        self._path.unlink(missing_ok=True)


@contextmanager
def host_load(layout: Layout) -> Iterator[HostLoad]:
    """Give what hosts play loads by, as long as this lasts."""
    made = HostLoad(layout)
    try:
        yield made
    finally:
        made.end()
