"""What is attacked: one step tries something, and notes whether it was refused, or what was wrong with the answer."""

import traceback
from collections import Counter
from contextlib import ExitStack
from random import Random

REFUSED, ACCEPTED = "refused", "accepted"


class Target:
    """One of them. `step` tries; what must not be goes to `wrong`, in words that replay it."""

    name = ""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = Random(f"{self.name} {seed}")
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.steps = 0
        self.opened = ExitStack()

    def step(self) -> None:
        """Try once, or a few times."""
        self.steps += 1
        try:
            self.attack()
        except Exception:  # noqa: BLE001 (whatever it is: an attack must not cause it)
            self.fault(traceback.format_exc(limit=-6))

    def attack(self) -> None:
        """Try, and `note` what came of it."""
        raise NotImplementedError

    def finish(self) -> None:
        """Look at what only shows at the end."""

    def note(self, outcome: str) -> None:
        """Count one try."""
        self.counts["tried"] += 1
        self.counts[outcome] += 1

    def fault(self, text: str) -> None:
        """Note what is wrong, and how to see it again."""
        self.counts["wrong"] += 1
        self.wrong.append(f"{self.name}, seed {self.seed}, step {self.steps}: {text}")

    def close(self) -> None:
        """Let go of all that it opened."""
        self.opened.close()
