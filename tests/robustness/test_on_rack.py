"""Commands that kill on a rack: the line that does the same again, and what is refused before a rack is brought up."""

import pytest

from pondstack_rack.layout import Sizes
from pondstack_rack.rack import Rack
from tests.robustness.mitigations import report
from tests.robustness.on_rack import Command, main

COMMAND = Command("moves", 20, "live migrations", Rack, Sizes(2, 1, 4), lambda *_: None, report)


def test_the_same_again_is_one_command() -> None:
    assert COMMAND.replay(7, 3) == "make robustness MOVES=3 SEED=7"


def test_none_is_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(COMMAND, "", ["--moves", "0"])
    assert "MOVES=0: choose at least 1" in capsys.readouterr().err
