#!/usr/bin/env python3
"""Draws the state machine of a slice into doc/source/reference/state-machine.md from its declaration.

`tools/draw_states.py` rewrites the page between its two markers; `--check` only says whether it is out of date (exit
code 1). Standard library only.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "doc" / "source" / "reference" / "state-machine.md"
BEGIN, END = "<!-- drawn by tools/draw_states.py: begin -->", "<!-- end -->"


def draw(transitions: Mapping[tuple[str, str], str], initial: str) -> str:
    """Return the machine as a Mermaid diagram and a table; `initial` is where every slice starts."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {initial}"]
    lines += [f"    {source} --> {target}: {event}" for (source, event), target in transitions.items()]
    lines += ["```", "", "| state | event | next state |", "|---|---|---|"]
    lines += [f"| {source} | {event} | {target} |" for (source, event), target in transitions.items()]
    return "\n".join(lines)


def page(text: str, drawing: str) -> str:
    """Return the page `text` with the part between its markers replaced; raises ValueError without markers."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has lost its markers: it needs a line {BEGIN!r} and a line {END!r}")
    return f"{head}{BEGIN}\n{drawing}\n{END}{tail}"


def main(arguments: list[str]) -> int:
    """Return 0, or 1 when `--check` finds the page out of date."""
    sys.path.insert(0, str(ROOT))
    from pondstack.domain.states import TRANSITIONS, SliceState

    text = PAGE.read_text()
    fresh = page(text, draw({(s.value, e.value): t.value for (s, e), t in TRANSITIONS.items()}, SliceState.FREE.value))
    if "--check" in arguments:
        if fresh != text:
            print(f"{PAGE.name} is out of date: run tools/draw_states.py", file=sys.stderr)
        return int(fresh != text)
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
