"""A short run of the seeded attacks; `make security MINUTES=5 SEED=1` is a long one."""

import os

from pondstack.rpc.identity import border as border_module
from tests.security.attacks import Attacker

SEED = int(os.environ.get("PONDSTACK_SEED", "1"))
STEPS = 400


def attacked(seed: int, steps: int = STEPS) -> Attacker:
    attacker = Attacker(seed)
    for _ in range(steps):
        attacker.step()
    return attacker


def test_no_attack_passes_and_every_honest_message_does() -> None:
    print(f"seed {SEED}: PONDSTACK_SEED={SEED} replays it")
    found = attacked(SEED)
    assert not found.wrong, found.counts
    assert {attack.__name__ for attack in Attacker.ATTACKS} < set(found.counts)


def test_a_border_without_one_of_its_checks_is_found(monkeypatch) -> None:
    monkeypatch.setattr(border_module.callers, "check", lambda *_arguments: None)
    assert set(attacked(SEED).wrong) == {"impostor"}
    monkeypatch.undo()
    monkeypatch.setattr(border_module.Freshness, "admit", lambda *_arguments: None)
    assert set(attacked(SEED).wrong) == {"replayed", "late"}
    monkeypatch.undo()
    monkeypatch.setattr(border_module.Expected, "check", lambda *_arguments: None)
    assert set(attacked(SEED).wrong) == {"forged answer"}
