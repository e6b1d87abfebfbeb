"""The wheel, built once per session from a copy of the tree, so that no `build/` of an earlier build leaks into it."""

import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_SHIPPED = {"tests", "__pycache__"}
PROGRAM = "pondstack_rdma/pondstack-data-plane"
NATIVE = frozenset(
    {
        "pondstack_rdma/_cm.abi3.so",
        "pondstack_rdma/_cpu_cache.abi3.so",
        "pondstack_rdma/_native.abi3.so",
        "pondstack_rdma/_verbs.abi3.so",
        PROGRAM,
    }
)
"""Built along with the wheel; limited API, so that one wheel serves all Pythons."""
MANUAL = "doc/build/man/pondstack-status.1"
"""A man page, which the wheel takes along when it was made before."""
SAMPLES = {
    "apparmor": "apparmor/",
    "deploy": "",
    "oslo-config-generator": "oslo-config-generator/",
    "selinux": "selinux/",
}
"""Folders of etc/, and where below share/pondstack their files go."""


@dataclass(frozen=True)
class Root:
    """One `package_dir` entry of setup.cfg: the import name and the folder it is made of."""

    name: str
    folder: Path

    def files(self) -> Iterator[tuple[Path, str]]:
        """Yield each file that has to be shipped, with its path inside the wheel."""
        for base, folders, names in os.walk(self.folder):
            folders[:] = sorted(set(folders) - NOT_SHIPPED)
            for name in sorted(names):
                path = Path(base, name)
                if path.suffix not in {".pyc", ".pyo", ".so"} and not name.startswith("."):
                    inside = Path(*self.name.split(".")) / path.relative_to(self.folder)
                    yield path, inside.as_posix()

    def modules(self) -> list[str]:
        """Return the dotted name of every module."""
        names = []
        for _, inside in self.files():
            if inside.endswith(".py"):
                names.append(inside.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        return names


@dataclass(frozen=True)
class Wheel:
    """A built wheel: its file names, its entry points by group, and where it is unpacked."""

    names: frozenset[str]
    folder: Path
    entry_points: dict[str, dict[str, str]]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def roots() -> list[Root]:
    """The import packages that setup.cfg ships."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["package_dir"].strip().splitlines()
    return [Root(name.strip(), ROOT / folder.strip()) for name, folder in (line.split("=") for line in lines)]


@pytest.fixture(scope="session")
def wheel(roots: list[Root], tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    """Build the wheel as a packager would, and unpack it."""
    work = tmp_path_factory.mktemp("wheel")
    source = work / "source"
    source.mkdir()
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "MANIFEST.in"):
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, source)
    for folder in {root.folder.relative_to(ROOT).parts[0] for root in roots} | {"etc"}:
        shutil.copytree(
            ROOT / folder,
            source / folder,
            # What a build in place left; the profile of that name is in etc.
            ignore=shutil.ignore_patterns(
                "__pycache__", "*.egg-info", "*.so", *([Path(PROGRAM).name] if folder != "etc" else [])
            ),
        )
    (source / MANUAL).parent.mkdir(parents=True)
    (source / MANUAL).write_text(".TH PONDSTACK-STATUS 1\n")  # as Sphinx would have made it
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(work), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, f"the wheel does not build:\n{built.stdout[-3000:]}\n{built.stderr[-3000:]}"
    (path,) = work.glob("*.whl")
    folder = work / "unpacked"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
        names = frozenset(archive.namelist())
    return Wheel(names, folder, _entry_points(folder))


def _entry_points(folder: Path) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    for path in folder.glob("*.dist-info/entry_points.txt"):
        parser.read(path)
    return {group: dict(parser[group]) for group in parser.sections()}
