"""Tiers of rdma/native in lenders' memory, in a process of their own; see tier_process.c."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pondstack_rdma.model import Key, Ticket

from . import builds

PROGRAM = "PONDSTACK_TEST_TIERS"
"""Where the program is, built already: emulated hosts have no compiler."""


def program(folder: Path) -> Path:
    """Build the program, with sanitizers, or return the one that is there."""
    built = os.environ.get(PROGRAM)
    return Path(built) if built else builds.tiers(folder)


class Tiers:
    """What a ticket and keys of one lender give."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Have it do one thing."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        answer: dict[str, Any] = json.loads(line)
        return answer

    def connect(self, ticket: Ticket, deadline_ms: int, **change: Any) -> str:
        """Show a ticket; the problem, or ""."""
        return str(self.ask(connect=ticket.to_dict() | change, deadline_ms=deadline_ms).get("problem", ""))

    def open(self, key: Key, **change: Any) -> str:
        """Show a key, whose tier gets the next number; the problem, or ""."""
        return str(self.ask(open=key.to_dict() | change).get("problem", ""))

    def write(self, slots: Sequence[int], seed: int = 1, *, tier: int = 0, adjacent: bool = False) -> int:
        """Write what the seed makes for each slot; the errno."""
        return int(self.ask(write=list(slots), seed=seed, tier=tier, adjacent=adjacent)["error"])

    def read(self, slots: Sequence[int], seed: int = 1, *, tier: int = 0, adjacent: bool = False) -> int:
        """Read them; the errno, or -1 where any was not what the seed makes."""
        answer = self.ask(read=list(slots), seed=seed, tier=tier, adjacent=adjacent)
        return int(answer["error"]) or -(answer["wrong"] > 0)

    def close(self) -> None:
        """End it; fails with what a sanitizer said."""
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
