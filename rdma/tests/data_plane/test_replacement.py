"""Each policy of rdma/native/replacement does what its reference model does, over seeded traces, with sanitizers."""

import random
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.seeds import seed

from .builds import HERE, build, sources
from .policies import MODELS, Policy

PARAMETERS = {"fifo": [0], "clock": [0], "mixed": [1, 5, 64, 1000], "s3-fifo": [0, 10, 50, 100]}
TRACES = 60
EVENTS = 400


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("replacement") / "replacement_trace"
    return build(built, [HERE / "replacement_trace.c", *sources("replacement")])


def trace(name: str, parameter: int, dice: random.Random) -> tuple[list[str], list[int]]:
    """Draw a legal trace: its lines, and the victims of the model."""
    pages = dice.choice((1, 2, 7, 40, 200))
    model: Policy = MODELS[name](parameter)
    resident: set[int] = set()
    lines, victims = [f"b {name} {pages} {parameter}"], []
    weights = dice.choice(((6, 3, 1, 4), (4, 8, 0, 4), (8, 1, 2, 2), (2, 2, 2, 6)))
    for _ in range(EVENTS):
        verb = dice.choices("atfv", weights)[0]
        page = min(dice.randrange(pages), dice.randrange(pages))  # some are wanted more often than others
        if verb == "v":
            victims.append(model.victim())
            resident.discard(victims[-1])
            lines.append("v")
            continue
        if verb == "t":
            model.touched.add(page)
        elif verb == "a" and page not in resident:
            model.admit(page)
            resident.add(page)
        elif verb == "f" and page in resident:
            model.forget(page)
            resident.discard(page)
        else:
            continue
        lines.append(f"{verb} {page}")
    return lines, victims


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_policy_chooses_what_its_model_chooses(program: Path, name: str) -> None:
    dice = random.Random(seed(20118))
    lines: list[str] = []
    expected: list[int] = []
    for number in range(TRACES):
        more, victims = trace(name, PARAMETERS[name][number % len(PARAMETERS[name])], dice)
        lines += more
        expected += victims
    done = subprocess.run([str(program)], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == expected
    assert len(set(expected)) > 100


def test_an_unknown_policy(program: Path) -> None:
    done = subprocess.run([str(program)], input="b lru 10 0\n", capture_output=True, text=True, check=False)
    assert done.returncode == 1
