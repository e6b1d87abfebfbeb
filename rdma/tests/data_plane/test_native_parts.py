"""The parts of rdma/native, file by file, in builds with sanitizers."""

import subprocess
from pathlib import Path

from tests.fixtures.seeds import by_night, seed

from .builds import HERE, NATIVE, build, nbd_fuzz, sources


def run(program: Path, *arguments: str) -> str:
    """Run a program of checks; what it printed."""
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_store(tmp_path: Path) -> None:
    program = build(tmp_path / "store_checks", [HERE / "store_checks.c", *sources("replacement", "store")])
    assert "the store holds" in run(program, str(tmp_path))


def test_links_over_verbs(tmp_path: Path) -> None:
    """Over a fake device and a fake librdmacm; over a real device: tests/hardware/test_rdma.py."""
    fakes = [HERE.parent / "fake_verbs.c", HERE.parent / "fake_rdmacm.c"]
    files = [HERE / "verbs_checks.c", *fakes, *sources("links", "replacement", "store")]
    program = build(tmp_path / "verbs_checks", files, libraries=("-ljansson", "-lcrypto", "-lpthread"))
    assert "links over verbs hold" in run(program)


def test_the_pager(tmp_path: Path) -> None:
    program = build(tmp_path / "pager_checks", [HERE / "pager_checks.c", *sources("replacement", "store", "pager")])
    assert "the pager's parts hold" in run(program)


def test_keepers(tmp_path: Path) -> None:
    files = [HERE / "keeper_checks.c", NATIVE / "control" / "keeper.c", *sources("replacement", "store", "pager")]
    assert "keepers hold" in run(build(tmp_path / "keeper_checks", files))


def test_nbd(tmp_path: Path) -> None:
    """Sessions of correct clients beside a model, and of those that damage what they say."""
    number = seed(20194)
    assert "accepted" in run(nbd_fuzz(tmp_path), str(number), str(by_night(5000, 200)))


def test_handovers(tmp_path: Path) -> None:
    """Messages of any content, and peers without the key or with another guest's."""
    parts = [NATIVE / "handover" / "peer.c", NATIVE / "handover" / "protocol.c", NATIVE / "links" / "wire.c"]
    files = [HERE / "handover_checks.c", *parts, NATIVE / "links" / "address.c", *sources("replacement", "store")]
    program = build(tmp_path / "handover_checks", files)
    assert "hand-overs hold" in run(program, str(seed(20196)), str(by_night(10_000_000, 100_000)))
