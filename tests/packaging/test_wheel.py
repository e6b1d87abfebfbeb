"""What is on disk is in the wheel, and nothing else is."""

import subprocess
import zipfile
from pathlib import Path

from .conftest import NATIVE, NOT_SHIPPED, PROGRAM, ROOT, SAMPLES, Root, Wheel

NO_COMPONENTS = {"rack", "tests", "tools", "bench", "doc", "build", "dist"}
"""What is never shipped; rack/ is a distribution of its own, for checkouts only."""


def _import_packages() -> list[Path]:
    """Every outermost folder with an __init__.py at most one level below a component folder."""
    found: list[Path] = []
    for init in sorted([*ROOT.glob("*/__init__.py"), *ROOT.glob("*/*/__init__.py")]):
        parts = init.relative_to(ROOT).parts[:-1]
        hidden = any(part.startswith(".") or part in NO_COMPONENTS | NOT_SHIPPED for part in parts)
        if not hidden and not (init.parent.parent / "__init__.py").exists():
            found.append(init.parent)
    return found


def test_each_import_package_of_the_tree_is_declared(roots: list[Root]) -> None:
    declared = {root.folder for root in roots}
    missing = [str(folder.relative_to(ROOT)) for folder in _import_packages() if folder not in declared]
    assert not missing, f"add to package_dir in setup.cfg: {missing}"


def test_each_file_of_a_package_is_in_the_wheel(roots: list[Root], wheel: Wheel) -> None:
    missing = [
        str(path.relative_to(ROOT)) for root in roots for path, inside in root.files() if inside not in wheel.names
    ]
    assert not missing, f"not in the wheel; add to packages or package_data in setup.cfg: {missing}"


def test_no_folder_of_modules_lacks_its_init(roots: list[Root]) -> None:
    """A folder without __init__.py is importable in the checkout, but no package that setup.cfg can list."""
    bare = {
        str(path.parent.relative_to(ROOT))
        for root in roots
        for path, _ in root.files()
        # alembic reads its scripts by path
        if path.suffix == ".py" and "migrations" not in path.parts and not (path.parent / "__init__.py").exists()
    }
    assert not bare


def test_the_wheel_ships_neither_tests_nor_foreign_files(roots: list[Root], wheel: Wheel) -> None:
    ours = {inside for root in roots for _, inside in root.files()} | NATIVE
    modules = {name for name in wheel.names if ".dist-info/" not in name and ".data/" not in name}
    assert not sorted(modules - ours)


def test_the_wheel_ships_what_the_installation_guide_copies(wheel: Wheel) -> None:
    shipped = {name.partition(".data/")[2] for name in wheel.names if ".data/" in name}
    samples = {
        f"data/share/pondstack/{target}{path.name}"
        for folder, target in SAMPLES.items()
        for path in (ROOT / "etc" / folder).iterdir()
    }
    assert shipped == samples | {"data/share/man/man1/pondstack-status.1"}


def test_the_native_part_is_built_for_all_pythons(wheel: Wheel) -> None:
    """Hosts run other versions of Python than the machine that builds."""
    assert wheel.names >= NATIVE
    (info,) = wheel.folder.glob("*.dist-info/WHEEL")
    assert "Tag: cp311-abi3-linux" in info.read_text()


def test_the_native_program_can_be_run(wheel: Wheel) -> None:
    """Installers keep the permission to execute that the wheel's archive has."""
    (path,) = wheel.folder.parent.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo(PROGRAM).external_attr >> 16 & 0o111
    program = wheel.folder / PROGRAM
    program.chmod(0o755)
    done = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "serve FOLDER" in done.stdout


def test_the_wheel_has_no_folder_of_novas_name(wheel: Wheel) -> None:
    """Where Nova is a checkout, Python would take that folder for Nova."""
    assert not [name for name in wheel.names if name.startswith("nova/")]
