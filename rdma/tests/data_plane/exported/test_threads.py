"""The thread of a device beside the control thread, under the thread sanitizer."""

import random
import threading
from pathlib import Path

import pytest

from .. import builds
from ..lenders import Lender
from ..processes import BLOCK, BlockPlane
from .client import TRIM, connect

MIB, PAGE = 2**20, 4096


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builds.racing(tmp_path_factory)


def test_no_race(program: Path, tmp_path: Path) -> None:
    plane = BlockPlane(program, tmp_path / "plane")
    plane.start()
    plane.await_ready()
    plane.export(2, most_mib=4)
    lender, done = Lender(tmp_path, "lender1", block=BLOCK), threading.Event()
    lender.lend(plane, 2)

    def work() -> None:
        dice = random.Random(1)
        with connect(plane.socket) as link:
            while not done.is_set():
                at = dice.randrange(256) * PAGE
                link.write(at, dice.randbytes(PAGE * dice.randint(1, 8)))
                link.read(at, PAGE)
                link.change(TRIM, at, PAGE)

    working = threading.Thread(target=work)
    working.start()
    for turn in range(6):
        plane.ask(verb="resize", block=BLOCK, mib=2 + turn % 3)
        plane.ask(verb="leave", block=BLOCK, lender="lender1", numbers=[lender.keys.pop(0).number])
        lender.lend(plane)
        assert plane.device()["state"] == "serving"
    done.set()
    working.join()
    lender.close()
    plane.ask(verb="unexport", block=BLOCK)
    plane.close()  # fails where the sanitizer said anything
