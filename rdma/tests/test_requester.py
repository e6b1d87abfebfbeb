"""The compiled part of verbs, over a fake device: it does what it says, and sanitizers find nothing."""

import sys
from pathlib import Path

import pytest

from pondstack_rdma.errors import NoDevice
from pondstack_rdma.verbs.requester import native

from .sanitized import NATIVE, build, run

HEADERS = Path("/usr/include/infiniband/verbs.h")


@pytest.mark.skipif(not HEADERS.exists(), reason="needs libibverbs-dev: run tools/setup.sh")
def test_it_stands_all_that_a_fake_device_does(tmp_path: Path) -> None:
    built = tmp_path / "_verbs.abi3.so"
    sources = [NATIVE / name for name in ("requester.c", "transfers.c", "line.c")]
    build([*sources, Path(__file__).with_name("fake_verbs.c")], built)
    assert "accesses of a fake device" in run("requester_process.py", str(built), "20181")


def test_without_it_the_error_says_what_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pondstack_rdma._verbs", None)
    with pytest.raises(NoDevice, match=r"libibverbs-dev.*`python3 -c 'import pondstack_rdma._verbs'`"):
        native()
