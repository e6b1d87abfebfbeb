"""`python -m tests.security --minutes N --seed S`: seeded attacks on the bus; the figures come last.

Exits 0 only when every attack was refused and every honest message let in.
"""

import argparse
import sys
import time

from tests.security.attacks import Attacker

SAY_SECONDS = 10.0


def main(words: list[str]) -> int:
    """Attack until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.security", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="for how long, in minutes (1)")
    parser.add_argument("--seed", type=int, default=1, help="the seed (1)")
    arguments = parser.parse_args(words)
    print(f"seed {arguments.seed}; the same again: make security SEED={arguments.seed}")
    attacker, begun = Attacker(arguments.seed), time.monotonic()
    said = begun
    while (now := time.monotonic()) < begun + 60 * arguments.minutes and not attacker.wrong:
        attacker.step()
        if now >= said + SAY_SECONDS:
            said = now
            print(f"{now - begun:6.0f} s  {attacker.done} rounds")
    print(f"\n{'message':15} | tried | refused | accepted")
    print("----------------|-------|---------|---------")
    for kind, seen in sorted(attacker.counts.items()):
        print(f"{kind:15} | {seen.total():5} | {seen['refused']:7} | {seen['accepted']:8}")
    if attacker.wrong:
        print(f"FAILED in round {attacker.done}: went the wrong way: {dict(attacker.wrong)}")
        return 1
    print(f"ok: {attacker.done} rounds, every attack was refused, every honest message was let in")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
