"""A started agent: nobody's processes without capabilities, and beside them a few of root's with exactly theirs."""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pondstack_agent import separation
from pondstack_agent.privilege import abilities
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import Identities

from .conftest import children, privileged, status

SECONDS = 60.0


class Agent:
    """pondstack-agent in its own session."""

    def __init__(self, config: Path) -> None:
        self.log = config.with_suffix(".log")
        code = "import sys; from pondstack_agent.cmd import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "--config-file", str(config), "--log-file", str(self.log)]
        self.process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)

    def said(self, text: str) -> Callable[[], bool]:
        return lambda: self.log.exists() and text in self.log.read_text()

    def serves(self) -> None:
        assert wait_until(lambda: self.said("serves")() or self.process.poll() is not None, SECONDS)
        assert self.process.poll() is None, self.log.read_text()

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=30)


@pytest.fixture
def emulated(config: Path) -> Path:
    """The same agent with the driver that needs no device, which does what the other one's processes do, too."""
    config.write_text(config.read_text().replace("drivers = cxl", "drivers = emulated"))
    return config


@pytest.fixture
def started(emulated: Path) -> Iterator[Agent]:
    made = Agent(emulated)
    yield made
    made.end()


def test_a_running_agent_is_nobody_and_each_privileged_process_has_its_capabilities(
    started: Agent, user: pwd.struct_passwd
) -> None:
    started.serves()
    mine = abilities.effective()
    named = privileged(started.process.pid)
    needed = {"host": {19}, "mitigation": {19, 23}, "libvirt": set(), "tiering": {21}, "telemetry": {1, 19, 38, 40}}
    assert set(named) == set(needed)
    for name, numbers in needed.items():
        seen = status(named[name])
        mask = sum(1 << number for number in numbers & mine)
        assert {seen[item]: item for item in ("CapEff", "CapPrm", "CapBnd")} == {f"{mask:016x}": "CapBnd"}, name
        assert (int(seen["CapInh"], 16), int(seen["CapAmb"], 16), seen["NoNewPrivs"]) == (0, 0, "1")
    assert len(_own(started)) == 2  # the parent and its worker
    for pid in _own(started):
        seen = status(pid)
        assert seen["Uid"].split() == [str(user.pw_uid)] * 4
        assert seen["Gid"].split() == [str(user.pw_gid)] * 4
        assert {int(seen[item], 16) for item in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")} == {0}
        assert seen["NoNewPrivs"] == "1"


def test_it_ends_and_so_do_they(started: Agent) -> None:
    """In this order: whoever signals the whole group leaves them to it until its own end."""
    started.serves()
    named = privileged(started.process.pid)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        for pid in named.values():
            os.kill(pid, number)
    started.process.terminate()
    assert started.process.wait(60) == 0
    assert wait_until(lambda: not any(Path("/proc", str(pid)).exists() for pid in named.values()), SECONDS)
    said = started.log.read_text()
    assert "Traceback" not in said
    assert "has ended" not in said


def test_one_that_has_ended_ends_the_agent(started: Agent) -> None:
    """Its verbs cannot be done any more; systemd starts the agent again."""
    started.serves()
    os.kill(privileged(started.process.pid)["tiering"], signal.SIGKILL)
    assert wait_until(started.said("has ended: the agent ends, too"), SECONDS)
    assert started.process.wait(60) == 0


def test_so_does_a_worker_that_has_ended(started: Agent) -> None:
    """A second one would hear what the first one had asked for."""
    started.serves()
    (worker,) = _own(started) - {started.process.pid}
    os.kill(worker, signal.SIGKILL)
    assert started.process.wait(60) == 0
    assert started.said("worker has ended")()


def test_what_is_anothers_is_told_at_the_start(emulated: Path, home: Path) -> None:
    folder = home / "state/agent"
    folder.mkdir(parents=True)
    agent = Agent(emulated)
    _, told = agent.process.communicate(timeout=60)
    assert agent.process.returncode == 1
    assert f"{folder} is not the user nobody's" in told
    assert f"chown -R nobody: {folder}" in told


def test_a_folder_that_the_user_does_not_reach_is_told(emulated: Path, home: Path) -> None:
    (home / "state").mkdir(mode=0o700)
    agent = Agent(emulated)
    _, told = agent.process.communicate(timeout=60)
    assert agent.process.returncode == 1
    assert "does not get into" in told


@pytest.mark.parametrize("name", ["", "root", "nobody-of-this-name"])
def test_without_such_a_user_it_stays_root_and_says_so(emulated: Path, name: str) -> None:
    emulated.write_text(emulated.read_text().replace("user = nobody", f"user = {name}"))
    agent = Agent(emulated)
    try:
        agent.serves()
        assert agent.said("The agent stays root")()
        assert status(agent.process.pid)["Uid"].split()[0] == "0"
        assert privileged(agent.process.pid) == {}
    finally:
        agent.end()


def test_the_key_of_its_credential_stays_roots(emulated: Path, home: Path) -> None:
    """Read before: with another broker it would end for want of it, or not at all."""
    section = Identities(home / "credentials").section("agent/host1")
    (home / "credentials").chmod(0o700)
    emulated.write_text(emulated.read_text().replace("fake://", "rabbit://guest:guest@127.0.0.1:1/") + section)
    agent = Agent(emulated)
    try:
        assert wait_until(agent.said("Connection refused"), SECONDS), agent.log.read_text()
        assert "Traceback" not in agent.log.read_text()
        assert "0" not in {status(pid)["Uid"].split()[0] for pid in _own(agent)}
    finally:
        agent.end()


def _own(agent: Agent) -> set[int]:
    """Return the agent's own processes."""
    pid = agent.process.pid
    return {pid, *children(pid)} - set(privileged(pid).values())


def test_every_context_is_one_that_an_agent_can_need() -> None:
    """A context that nobody forks would be the agent's own attempt, and fail there."""
    modules = [
        path for path in Path(separation.__file__).parent.rglob("*.py") if "\ncontext = Context(" in path.read_text()
    ]
    source = Path(separation.__file__).read_text()
    assert len(modules) == 7
    for path in modules:
        module = ".".join(path.relative_to(Path(separation.__file__).parents[1]).with_suffix("").parts)
        package, _, name = module.rpartition(".")
        assert f"from {package} import {name}" in source
