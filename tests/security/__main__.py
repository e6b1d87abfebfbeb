"""`python -m tests.security --minutes N --seed S`: seeded attacks on all that others can reach; the figures come last.

Exits 0 only when nothing wrong was accepted, nothing crashed, and every honest message was let in. What failed is told
with the seed and the step that show it again: `--only TARGET --steps N` runs just that.
"""

import argparse
import logging
import sys
import time

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from tests.security.attacks import Attacker  # noqa: E402 (threading first)
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target  # noqa: E402
from tests.security.fuzzers.targets import TARGETS  # noqa: E402

SAY_SECONDS = 10.0
BUS = "bus"


def main(words: list[str]) -> int:
    """Attack each target for its share of the time."""
    arguments = _parser().parse_args(words)
    seed, names = arguments.seed, [arguments.only] if arguments.only else [BUS, *TARGETS]
    only = f" ONLY={arguments.only}" if arguments.only else ""
    print(f"seed {seed}; the same again: make security SEED={seed} MINUTES={arguments.minutes:g}{only}")
    logging.disable(logging.CRITICAL)
    share = 60 * arguments.minutes / len(names)
    wrong: list[str] = []
    rows: list[tuple[str, int, int, int, int]] = []
    for name in names:
        if name == BUS:
            found = _attack_bus(seed, share, arguments.steps, rows)
        else:
            target = _attack(name, seed, share, arguments.steps)
            counts = target.counts
            rows.append((name, counts["tried"], counts[REFUSED], counts[ACCEPTED], counts["wrong"]))
            found = target.wrong
        wrong += found
    for text in wrong:
        print(f"\nWRONG  {text}")
    print(f"\n{'target':22} |    tried |  refused | accepted | wrong")
    print("-----------------------|----------|----------|----------|------")
    for name, tried, refused, accepted, odd in rows:
        print(f"{name:22} | {tried:8} | {refused:8} | {accepted:8} | {odd:5}")
    if wrong:
        print(f"FAILED: {len(wrong)} times something went wrong")
        return 1
    print("ok: nothing wrong was accepted, nothing crashed, every honest message was let in")
    return 0


def _attack(name: str, seed: int, seconds: float, steps: int | None) -> Target:
    """Attack one target for so long, or for so many steps; it ends at the first that went wrong."""
    target = TARGETS[name](seed)
    try:
        begun = said = time.monotonic()
        while not target.wrong and (time.monotonic() < begun + seconds if steps is None else target.steps < steps):
            target.step()
            if time.monotonic() >= said + SAY_SECONDS:
                said = time.monotonic()
                print(f"{name:22} {said - begun:6.0f} s  {target.steps} steps, {target.counts['tried']} tried")
        target.finish()
    finally:
        target.close()
    return target


def _attack_bus(seed: int, seconds: float, steps: int | None, rows: list[tuple[str, int, int, int, int]]) -> list[str]:
    attacker, begun = Attacker(seed), time.monotonic()
    while not attacker.wrong and (time.monotonic() < begun + seconds if steps is None else attacker.done < steps):
        attacker.step()
    for kind, seen in sorted(attacker.counts.items()):
        odd = attacker.wrong.get(kind, 0)
        rows.append((f"{BUS}: {kind}"[:22], seen.total(), seen[REFUSED], seen[ACCEPTED], odd))
    return [f"{BUS}, seed {seed}, step {attacker.done}: {kind}" for kind in attacker.wrong]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.security", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="for how long in all, in minutes (1)")
    parser.add_argument("--seed", type=int, default=1, help="the seed (1)")
    parser.add_argument("--only", choices=[BUS, *TARGETS], help="attack one target only")
    parser.add_argument("--steps", type=int, help="so many steps of each target, however long they take")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
