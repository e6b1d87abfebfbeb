"""The plugin's files: style, documented variables, samples, packages, and no claim on Nova."""

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devstack.harness import ROOT

PLUGIN = ROOT / "devstack"
SETTINGS = PLUGIN / "settings"
ASSIGNED = re.compile(r"^\s*(POND_[A-Z_]+)\+?=", re.MULTILINE)
LIBRARIES = sorted(PLUGIN.glob("lib/*"))
SHELL = [
    SETTINGS,
    PLUGIN / "plugin.sh",
    *LIBRARIES,
    *sorted(PLUGIN.glob("upgrade/*")),
    *sorted(PLUGIN.glob("tools/*.sh")),
]


def _tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_bashate_finds_nothing() -> None:
    # E005: DevStack sources files without an ending. E006: our lines are as long as the tree's.
    done = _tool("bashate", "--ignore", "E005,E006", *map(str, SHELL))
    assert done.returncode == 0, done.stdout + done.stderr


def test_bashate_would_find_something(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.sh"
    wrong.write_text("if true\nthen\n  echo x\nfi\n")
    assert _tool("bashate", str(wrong)).returncode != 0


def test_shellcheck_finds_nothing() -> None:
    done = _tool("shellcheck", "-x", *map(str, SHELL), *map(str, sorted((ROOT / "tests/devstack").glob("*.sh"))))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_variable_of_the_settings_is_described() -> None:
    lines = SETTINGS.read_text().splitlines()
    described = set()
    for number, line in enumerate(lines):
        if (found := ASSIGNED.match(line)) and lines[number - 1].startswith("# "):
            described.add(found[1])
    assert set(ASSIGNED.findall(SETTINGS.read_text())) == described


def test_every_variable_that_is_used_is_in_the_settings() -> None:
    known = set(ASSIGNED.findall(SETTINGS.read_text()))
    for path in SHELL:
        text = path.read_text()
        used = set(re.findall(r"\bPOND_[A-Z_]+\b", text)) - set(ASSIGNED.findall(text))
        assert used <= known, f"{path.name}: {sorted(used - known)}"


@pytest.mark.parametrize(
    "path", [*PLUGIN.glob("samples/*"), ROOT / "doc/source/install/devstack.md"], ids=lambda path: path.name
)
def test_samples_and_guide_name_variables_that_there_are(path: Path) -> None:
    known = set(ASSIGNED.findall(SETTINGS.read_text()))
    assert set(re.findall(r"\bPOND_[A-Z_]+\b", path.read_text())) <= known


def test_the_guide_names_every_variable() -> None:
    guide = (ROOT / "doc/source/install/devstack.md").read_text()
    assert {name for name in ASSIGNED.findall(SETTINGS.read_text()) if name not in guide} == set()


def test_packages_are_names_of_debian() -> None:
    for line in (PLUGIN / "files/debs/pondstack").read_text().split("\n")[:-1]:
        assert re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", line), line


def test_nothing_depends_on_nova() -> None:
    """DevStack's Nova is a checkout with a version of its own: pip would replace it."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    required = setup["options"]["install_requires"].split()
    assert not [line for line in required if re.match(r"(nova|placement|openstack-placement)\b", line)]
