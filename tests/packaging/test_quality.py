"""The tools that a reviewer would run: ruff, mypy, bash -n, and a look for what must not be committed."""

import re
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT
from .tracked import tracked

STRICT = ("pondstack/domain", "pondstack/ha", "pondstack/rpc", "rdma/pondstack_rdma")


def _tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_ruff_finds_nothing() -> None:
    done = _tool("ruff", "check", "--output-format=concise", ".")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_code_is_formatted() -> None:
    done = _tool("ruff", "format", "--check", ".")
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_hold() -> None:
    done = _tool("mypy")
    assert done.returncode == 0, done.stdout + done.stderr


def test_strict_packages_are_strict(tmp_path: Path) -> None:
    """The override really applies: an untyped function in each of them is an error."""
    planted = tmp_path / "planted.py"
    planted.write_text("def untyped(value):\n    return value\n")
    files = [str(ROOT / package / "__init__.py") for package in STRICT]
    shadows = [word for file in files for word in ("--shadow-file", file, str(planted))]
    done = _tool("mypy", "--no-incremental", *shadows, *files)
    assert done.stdout.count("no-untyped-def") == len(STRICT), done.stdout + done.stderr


def test_scripts_parse() -> None:
    scripts = [path for path in tracked() if path.suffix == ".sh" or _first_line(path).endswith(b"bash")]
    assert scripts
    for script in scripts:
        text = script.read_text()
        if "templates" in script.parts:
            text = text.replace("$$", "$")  # string.Template's; its ${names} are good shell as they are
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}: {done.stderr}"


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(200).strip() if file.read(2) == b"#!" else b""


def test_no_file_names_a_machine_of_ours() -> None:
    """Paths and package hosts of one workplace break on every other machine."""
    patterns = [
        re.compile(rb"(?<![\w.}/-])/(?:" + b"|".join((b"work", b"farm")) + rb")/"),
        re.compile(rb"--(?:extra-)?index-" + rb"url|trusted-" + rb"host"),
    ]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.decode(errors='replace').strip()[:100]}"
        for path in tracked()
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if any(pattern.search(line) for pattern in patterns)
    ]
    assert not found, "\n".join(found)


def test_every_pin_is_a_plain_version() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line.strip() and not line.startswith("#")]
    wrong = [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+(\s*;.*)?", line.strip())]
    assert len(pins) > 100
    assert not wrong


def test_the_makefile_is_thin() -> None:
    """A target calls one script or one tool; logic belongs where it is tested."""
    recipe: dict[str, int] = {}
    target = ""
    for line in (ROOT / "Makefile").read_text().splitlines():
        if re.match(r"^[A-Za-z][\w-]*\s*:(?!=)", line):
            target = line.partition(":")[0]
        elif line.startswith("\t"):
            recipe[target] = recipe.get(target, 0) + 1
    assert recipe
    assert max(recipe.values()) <= 3, recipe
