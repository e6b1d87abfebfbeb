"""The docs follow the code: drawn pages are fresh, pages are reachable, links lead somewhere, notes are legal."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from pondstack.conf import opts
from pondstack.domain.causes import Cause
from pondstack.domain.states import TRANSITIONS, SliceState
from pondstack_agent.state_shapes import SHAPES

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "doc" / "source"


@pytest.fixture(scope="module")
def draw_states() -> ModuleType:
    """tools/draw_states.py as a module."""
    spec = importlib.util.spec_from_file_location("draw_states", ROOT / "tools" / "draw_states.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_drawn_state_machine_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "draw_states.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_changed_table_makes_the_page_out_of_date(draw_states: ModuleType) -> None:
    text = (DOC / "reference" / "state-machine.md").read_text()
    table = dict(TRANSITIONS)
    table.popitem()
    assert draw_states.page(text, draw_states.draw(table, SliceState.FREE)) != text
    assert draw_states.page(text, draw_states.draw(dict(TRANSITIONS), SliceState.FREE)) == text


def test_the_drawing_has_every_transition() -> None:
    text = (DOC / "reference" / "state-machine.md").read_text()
    for (source, event), target in TRANSITIONS.items():
        assert f"    {source.value} --> {target.value}: {event.value}\n" in text


def pages() -> list[Path]:
    """Return the pages of doc/source, without the copies that a build makes."""
    found = sorted([*DOC.rglob("*.md"), *DOC.rglob("*.rst")])
    return [path for path in found if "api-ref" not in path.relative_to(DOC).parts]


@pytest.mark.parametrize("folder", ["install", "user", "admin", "cli", "reference", "contributor"])
def test_every_page_is_linked_from_the_index_of_its_folder(folder: str) -> None:
    index = (DOC / folder / "index.md").read_text()
    missing = [path.name for path in pages() if path.parent.name == folder and f"({path.name})" not in index]
    assert missing == ["index.md"]
    assert f"({folder}/index.md)" in (DOC / "index.md").read_text()


def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    """A page that no table of contents names, a dead link and a wrong option are warnings: `make docs`."""
    for builder in ("html", "man"):
        strict = ("-q", "-W", "--keep-going", "-n", "-d", str(tmp_path / "read"))
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", *strict, "-b", builder, str(DOC), str(tmp_path / builder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    built = {path.relative_to(tmp_path / "html").with_suffix("") for path in tmp_path.rglob("*.html")}
    assert {path.relative_to(DOC).with_suffix("") for path in pages()} <= built
    manuals = {path.stem: path.read_text() for path in (tmp_path / "man").glob("*.1")}
    assert sorted(manuals) == [path.stem for path in sorted((DOC / "cli").glob("pondstack-*.md"))]
    assert r"\fBpondstack\-manage credentials issue\fP" in manuals["pondstack-manage"]
    assert r"\fB\-\-config\-file PATH\fP" in manuals["pondstack-agent"]


def test_every_option_is_in_the_configuration_reference() -> None:
    """The pages are drawn from three lists of options: each module of pondstack.conf is in one of them."""
    shown = {
        line.strip()
        for path in (DOC / "reference").glob("configuration*.rst")
        for line in path.read_text().splitlines()
        if line.startswith("   pondstack")
    }
    assert shown == {
        entry.name
        for entry in metadata.entry_points(group="oslo.config.opts")
        if entry.value.startswith("pondstack.conf")
    }


def test_links_between_pages_lead_somewhere() -> None:
    dead = [
        f"{path.relative_to(ROOT)}: {link}"
        for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages()]
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text())
        if not (path.parent / link).exists()
    ]
    assert not dead


def test_release_notes_are_legal() -> None:
    reno = Path(sys.executable).with_name("reno")
    done = subprocess.run([str(reno), "lint", str(ROOT)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((ROOT / "releasenotes" / "notes").glob("*.yaml"))


def test_a_note_with_an_unknown_section_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "releasenotes", tmp_path / "releasenotes")
    (tmp_path / "releasenotes" / "notes" / "wrong-0123456789abcdef.yaml").write_text("novelties:\n  - x\n")
    reno = Path(sys.executable).with_name("reno")
    done = subprocess.run([str(reno), "lint", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_every_option_that_a_page_names_exists() -> None:
    lists = (opts.list_opts(), opts.list_agent_opts(), opts.list_nova_opts(), opts.list_watcher_opts())
    known = {
        (str(getattr(group, "name", group)), option.dest)
        for found in lists
        for group, options in found
        for option in options
    }
    groups = {group for group, _ in known} - {"DEFAULT"}
    named = {
        (path.name, *found)
        for path in pages()
        for found in re.findall(r"`\[(\w+)\] (\w+)(?: = [^`]*)?`", path.read_text())
        if found[0] in groups
    }
    assert len(named) > 60
    assert not [(page, group, option) for page, group, option in sorted(named) if (group, option) not in known]


def test_every_path_that_a_page_names_exists() -> None:
    """Paths of the tree, in backquotes; a page about the code that follows no longer is found here."""
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"tools"}
    named = {
        (path.name, found)
        for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages()]
        for found in re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", path.read_text())
        if found.split("/")[0] in tops and not found.split("/")[1].isupper()  # `agent/HOST` is an identity
    }
    assert sum(page == "architecture.md" for page, _ in named) > 80
    assert not [(page, name) for page, name in sorted(named) if not (ROOT / name).exists()]


def test_every_line_of_a_log_that_is_documented_is_logged() -> None:
    table = (DOC / "admin" / "monitoring.md").read_text().split("## Logs")[1].split("## ")[0]
    lines = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    sources = "".join(path.read_text() for top in ("pondstack", "agent") for path in (ROOT / top).rglob("*.py"))
    parts = {part.strip() for line in lines for part in re.split(r"\.\.\.|<\w+>|\bN\b", line) if part.strip(" :")}
    assert len(lines) > 5
    assert not [part for part in sorted(parts) if part not in sources]


def test_the_architecture_page_gives_a_reason_for_each_large_folder() -> None:
    page = (DOC / "contributor" / "architecture.md").read_text()
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sizes = Counter(str(Path(name).parent) for name in tracked.splitlines() if not name.endswith("__init__.py"))
    reasons = page.split("## Folders with more than 15 modules")[1]
    assert not [folder for folder, modules in sizes.items() if modules > 15 and f"`{folder}/`" not in reasons]


@pytest.mark.parametrize("package", ["pondstack", "pondstack/controller", "agent/pondstack_agent"])
def test_the_architecture_page_has_every_package(package: str) -> None:
    page = (DOC / "contributor" / "architecture.md").read_text()
    inside = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")} - {"tests"}
    assert len(inside) > 5
    assert not [name for name in sorted(inside) if f"`{name}/`" not in page]


def test_every_folder_of_the_agents_state_is_documented() -> None:
    table = (DOC / "admin" / "agent.md").read_text().split("## Its state on disk")[1].split("## ")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    documented = {folder for cell in cells for folder in re.findall(r"`([\w-]+)`", cell)}
    assert sorted(set(SHAPES) - documented) == []


def test_every_cause_of_a_quarantine_is_documented() -> None:
    text = (DOC / "reference" / "state-machine.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == sorted(Cause)
