"""CloudSim Plus on a trace: its jars by Maven, its driver Replay.java by `java`."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pondstack.planner.trace import Trace

FOLDER = Path(__file__).parent
MILLION = 1_000_000


class NoCloudSim(RuntimeError):
    """It cannot be run here; the text says what is missing."""


@dataclass(frozen=True)
class Run:
    """CPU seconds of the simulation, and how many VMs it placed."""

    seconds: float
    placed: int


def fetch(folder: Path) -> None:
    """Download CloudSim Plus and what it needs. Raises NoCloudSim."""
    for tool in ("mvn", "java"):
        if shutil.which(tool) is None:
            raise NoCloudSim(f"{tool} is missing: install Maven and a JDK of version 17 or later")
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        FOLDER / "pom.xml",
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
    ]
    _run(command, "Maven cannot download CloudSim Plus from Maven Central")


def replay(jars: Path, trace: Trace, hosts: int, vcpus: int, mib: int) -> Run:
    """Run a trace on hosts. Raises NoCloudSim."""
    path = jars / "trace.csv"
    columns = ["start_seconds", "end_seconds", "vcpus", "memory_mib"]
    trace.servers.select(columns).cast({"vcpus": int}).write_csv(path, include_header=False)
    arguments = [path, hosts, vcpus, mib]
    text = _run(["java", "-cp", f"{jars}/*", FOLDER / "Replay.java", *arguments], "CloudSim Plus does not run")
    seconds, placed, _ = text.split()
    return Run(float(seconds), int(placed))


def _run(command: list[object], what: str) -> str:
    done = subprocess.run([str(item) for item in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCloudSim(f"{what}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout
