"""The profiler's command: its choice of a method, its tables, and what it says when it cannot measure."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack_agent.tiering import profile

COMMAND = [sys.executable, "-m", "pondstack_agent.tiering.profile"]
SPARE = "import sys; sys.stdin.read()"


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", SPARE, "-uuid", "a-b-c"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def _mind_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=60)


def test_a_table_for_people(sleeper) -> None:
    done = call("--pid", str(sleeper.pid), "--hot", "0.1", "--warm", "0.2", "--cycles", "2")
    assert done.returncode == 0, done.stderr
    head, windows, _when, title, *rows = [line for line in done.stdout.splitlines() if line]
    assert f"process {sleeper.pid} (" in head
    assert "method referenced" in head
    assert windows.startswith("hot: used within 0.1 s, warm: within 0.2 s")
    assert title.split()[:2] == ["type", "MiB"]
    assert [row.split()[0] for row in rows][:2] == ["anon", "file"]
    assert sum(row.startswith("cost: ") for row in rows) == 2


def test_a_table_for_machines(sleeper) -> None:
    done = call("--instance", "a-b-c", "--hot", "0.1", "--warm", "0.2", "--json")
    found = json.loads(done.stdout)
    assert (found["pid"], found["method"]) == (sleeper.pid, "referenced")
    anon = found["types"]["anon"]
    # It waits for its input and uses next to nothing.
    assert anon["cold"] > 10 * (anon["hot"] + anon["warm"])
    assert found["cost"]["processor_seconds"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(sleeper, number: signal.Signals) -> None:
    command = [*COMMAND, "--pid", str(sleeper.pid), "--hot", "60", "--cycles", "0"]
    # In the background of a script the tests themselves ignore Ctrl-C, which a child inherits.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=_mind_interrupts) as running:
        assert running.stdout
        assert "method referenced" in running.stdout.readline()
        assert running.stdout.readline().startswith("hot: ")  # it watches now
        running.send_signal(number)
        assert running.wait(30) == 130


def test_what_is_not_there() -> None:
    done = call("--instance", "no-such")
    assert done.returncode == 1
    assert "pondstack-profile: no process of this host was started with -uuid no-such\n" in done.stderr
    ended = subprocess.Popen(["true"])
    ended.wait()
    done = call("--pid", str(ended.pid))
    assert done.returncode == 1
    assert f"process {ended.pid}: No such file or directory" in done.stderr


@pytest.mark.parametrize("wrong", ["--hot 60 --warm 60", "--hot 0", "--cycles -1", ""])
def test_usage(wrong: str) -> None:
    with pytest.raises(SystemExit) as caught:
        profile.parse(["--pid", "1", *wrong.split()] if wrong else [])
    assert caught.value.code == 2


def test_a_guest_of_kvm_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "7" / "fd"
    folder.mkdir(parents=True)
    profile.check(7, tmp_path)
    (folder / "9").symlink_to("anon_inode:kvm-vm")
    with pytest.raises(HostUnusable, match="would be too low"):
        profile.check(7, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_somebody_elses_process_is_not_ours_to_look_at(sleeper) -> None:
    done = subprocess.run(
        [*COMMAND, "--pid", str(sleeper.pid)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        user=65534,
    )
    assert done.returncode == 1
    assert f"process {sleeper.pid}: Permission denied" in done.stderr
