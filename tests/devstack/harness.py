"""Runs phases of the plugin in a sandbox, and tells what they asked of DevStack and which files they left."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLUGIN = Path(os.environ.get("POND_PLUGIN", ROOT))
"""The repository whose plugin is run; mutants.py names broken copies."""
PROGRAMS = ("pondstack-data-plane", "pondstack-manage", "uwsgi")
NOVA_CONF = "[filter_scheduler]\nenabled_filters = ComputeFilter,ImagePropertiesFilter\n"
SECONDS = 240
ABSTRACTIONS = "etc/apparmor.d/abstractions"


@dataclass(frozen=True)
class Scenario:
    """One node as its local.conf describes it; `authority`: it has that of the first node.

    `apparmor`: what libvirt's rules of guests say, "" where there is no AppArmor.
    """

    name: str
    services: str
    settings: Mapping[str, str] = field(default_factory=dict)
    authority: bool = False
    apparmor: str = ""


class PhaseFailed(Exception):
    """A phase ended the script, as `die` does; the text is what it printed."""


@dataclass
class Sandbox:
    """The folders that a node of the scenario would have, below one of ours."""

    path: Path
    scenario: Scenario
    plugin: Path = PLUGIN

    def __post_init__(self) -> None:
        for folder in (
            "bin",
            "etc/nova",
            "etc/libvirt",
            ABSTRACTIONS,
            "usr/bin",
            "tempest/etc",
            "data",
            "dest",
            "files",
        ):
            (self.path / folder).mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            program = self.path / "bin" / name
            program.write_text(f'#!/bin/bash\nprintf "{name} %s\\n" "$*" >>"$RECORD"\n')
            program.chmod(0o755)
        (self.path / "etc/nova/nova.conf").write_text(NOVA_CONF)
        (self.path / "etc/nova/nova_cell1.conf").write_text("")
        if self.scenario.authority:
            (self.path / "etc/pondstack/authority").mkdir(parents=True)
            (self.path / "etc/pondstack/authority/authority.key").write_text("")
        if self.scenario.apparmor:
            (self.path / ABSTRACTIONS / "libvirt-qemu").write_text(f"# {self.scenario.apparmor}\n")
        (self.path / "etc/libvirt/qemu.conf").write_text("# as the distribution has it\nvnc_tls = 1\n")

    def run(self, mode: str, **more: str) -> str:
        """Run `stack`, `unstack`, `clean` or `settings`; return what was asked of DevStack. Raises PhaseFailed."""
        record = self.path / "record"
        record.write_text("")
        environment = {
            "PATH": os.environ["PATH"],
            "SANDBOX": str(self.path),
            "RECORD": str(record),
            "PLUGIN": str(self.plugin),
            "DEVSTACK_DIR": os.environ.get("DEVSTACK_DIR", ""),
            "ENABLED_SERVICES": self.scenario.services,
            **self.scenario.settings,
            **more,
        }
        done = subprocess.run(
            ["bash", str(HERE / "standins.sh"), mode],
            env=environment, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=self.path,
        )  # fmt: skip
        text = self.plain(record.read_text())
        record.unlink()
        if done.returncode:
            raise PhaseFailed(self.plain(done.stdout + done.stderr))
        return text

    def plain(self, text: str) -> str:
        """Return a text with the names of this run's folders replaced."""
        return text.replace(str(self.path), "@").replace(str(self.plugin), "@plugin")

    def file(self, name: str) -> str:
        """Return a file; a configuration file in one order, whoever wrote it."""
        text = self.plain((self.path / name).read_text())
        return "\n".join(_options(text)) + "\n" if name.endswith(".conf") and "libvirt" not in name else text

    def files(self) -> list[str]:
        """Return the names of all files that a phase may have made or changed, sorted."""
        found = (path.relative_to(self.path) for path in self.path.rglob("*") if path.is_file())
        return sorted(str(name) for name in found if name.parts[0] != "bin")


def _options(text: str) -> list[str]:
    """Return `[section] option = value` for each line, sorted by option; values of one option stay in their order."""
    section, found = "", []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            section = line
        elif line:
            found.append(f"{section} {line}")
    return sorted(found, key=lambda line: line.partition(" = ")[0])


def story(scenario: Scenario, folder: Path, plugin: Path = PLUGIN) -> str:
    """Return all that a node does from stack.sh to clean.sh, and its files after each; a phase that fails ends it."""
    sandbox = Sandbox(folder, scenario, plugin)
    parts = []
    for mode in ("stack", "unstack", "clean"):
        try:
            parts.append(sandbox.run(mode))
        except PhaseFailed as failure:
            parts.append(f"{mode} failed: {failure}")
            break
        if mode != "unstack":
            parts += [f"== {name}\n{sandbox.file(name)}" for name in sandbox.files()]
    return "".join(parts)


def expected(scenario: Scenario) -> Path:
    """Return where the story of a scenario is written down."""
    return HERE / "expected" / f"{scenario.name}.txt"
