"""The commands of doc/source/admin/databases.md do what the page says, in the order of the page."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pondstack.db.connection import migration
from pondstack_rack.daemon import kill_tree
from pondstack_rack.servers import LOOPBACK
from pondstack_rack.servers import galera as galera_cluster
from pondstack_rack.servers import postgresql_pair as pair

PAGE = Path(__file__).resolve().parents[2] / "doc" / "source" / "admin" / "databases.md"
PORTS = 13


def commands(title: str) -> str:
    """Return the shell blocks of a section as one script."""
    section = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert section, title
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL))


def ports() -> int:
    """Return a port P so that P + 1 ... P + PORTS are free."""
    for base in range(31000, 60000, 50):
        try:
            for port in range(base + 1, base + PORTS + 1):
                with socket.socket() as probe:
                    probe.bind((LOOPBACK, port))
        except OSError:
            continue
        return base
    raise AssertionError("no free ports")


def run(title: str, directory: Path) -> str:
    """Run a section's commands in a directory of their own; return what they print."""
    path = [str(Path(sys.executable).parent), str(galera_cluster.SCRIPTS), os.environ["PATH"], "/usr/sbin"]
    environment = {**os.environ, "PATH": os.pathsep.join(path), "D": str(directory), "P": str(ports())}
    log = directory / "output"
    with log.open("wb") as output:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands(title)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
    said = [log, *directory.glob("*.log"), *directory.glob("*/log")]
    assert done.returncode == 0, "\n".join(f"== {file.name}\n{file.read_text()[-3000:]}" for file in said)
    return log.read_text()


@pytest.fixture
def directory(short_directory: Callable[[str], Path]) -> Iterator[Path]:
    """An empty directory; what the commands started in it is ended by pid."""
    made = short_directory("docs")
    yield made
    for file in [*made.glob("*/mariadbd.pid"), *made.glob("*/postmaster.pid")]:
        try:
            process = psutil.Process(int(file.read_text().split()[0]))
            ours = str(made) in " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        assert not ours or not kill_tree(process)


def test_sqlite(directory: Path) -> None:
    assert f"{migration.head()} (newest: {migration.head()})" in run("SQLite", directory)


@pytest.mark.functional
def test_galera(directory: Path) -> None:
    if reason := galera_cluster.missing():
        pytest.skip(reason)
    output = run("Galera, three nodes", directory)
    # After the kill of the first node another one answers, and in the end they are three again.
    assert f"{migration.head()} (newest: {migration.head()})" in output
    assert re.search(r"wsrep_cluster_size\s+3", output)


@pytest.mark.functional
def test_postgresql(directory: Path) -> None:
    if reason := pair.missing():
        pytest.skip(reason)
    output = run("PostgreSQL with a synchronous standby", directory)
    assert f"{migration.head()} (newest: {migration.head()})" in output
    assert output.count("ALTER SYSTEM") == 3
