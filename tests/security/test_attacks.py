"""A short run of the seeded attacks; `make security MINUTES=5 SEED=1` is a long one."""

from pondstack.rpc.identity import border as border_module
from tests.fixtures import seeds
from tests.security.attacks import Attacker

STEPS = 400


def attacked(seed: int, steps: int = STEPS) -> Attacker:
    attacker = Attacker(seed)
    for _ in range(steps):
        attacker.step()
    return attacker


def test_no_attack_passes_and_every_honest_message_does() -> None:
    found = attacked(seeds.seed(1))
    assert not found.wrong, found.counts
    assert {attack.__name__ for attack in Attacker.ATTACKS} < set(found.counts)


def test_a_border_without_one_of_its_checks_is_found(monkeypatch) -> None:
    monkeypatch.setattr(border_module.callers, "check", lambda *_arguments: None)
    assert set(attacked(1).wrong) == {"impostor"}
    monkeypatch.undo()
    monkeypatch.setattr(border_module.Freshness, "admit", lambda *_arguments: None)
    assert set(attacked(1).wrong) == {"replayed", "late"}
    monkeypatch.undo()
    monkeypatch.setattr(border_module.Expected, "check", lambda *_arguments: None)
    assert set(attacked(1).wrong) == {"forged answer"}
