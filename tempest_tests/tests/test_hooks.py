"""The service command: how it is called, and what its failures say."""

import sys
from pathlib import Path

import pytest

from pondstack_tempest.hooks import AGENT, CONTROLLER, ServiceCommandFailed, Services

SCRIPT = """
import sys
open(sys.argv[1], "a").write(" ".join(sys.argv[2:]) + "\\n")
print("no such host", file=sys.stderr)
sys.exit(sys.argv[-1] == "nowhere")
"""


@pytest.fixture
def command(tmp_path: Path) -> str:
    (tmp_path / "a script.py").write_text(SCRIPT)
    return f"{sys.executable} '{tmp_path / 'a script.py'}' {tmp_path / 'calls'}"


def test_it_is_called_with_verb_service_and_host(command: str, tmp_path: Path) -> None:
    services = Services(command, 30)
    services.kill(AGENT, "host1")
    services.start(CONTROLLER, "controller1")
    assert (tmp_path / "calls").read_text().splitlines() == [
        "kill pondstack-agent host1",
        "start pondstack-controller controller1",
    ]


def test_a_failure_says_what_the_command_said(command: str) -> None:
    with pytest.raises(ServiceCommandFailed, match="exited with 1: no such host"):
        Services(command, 30).kill(AGENT, "nowhere")


def test_a_missing_and_a_silent_command_are_failures(tmp_path: Path) -> None:
    with pytest.raises(ServiceCommandFailed, match="No such file"):
        Services(str(tmp_path / "missing"), 30).kill(AGENT, "host1")
    with pytest.raises(ServiceCommandFailed, match="timed out"):
        Services(f"{sys.executable} -c 'import threading; threading.Event().wait()'", 0.3).kill(AGENT, "host1")
