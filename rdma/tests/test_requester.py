"""The compiled parts of verbs, over a fake device and librdmacm: they do what they say, and sanitizers find nothing."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pondstack_rdma.errors import NoDevice
from pondstack_rdma.verbs.cm import open_channel
from pondstack_rdma.verbs.requester import native

from .sanitized import NATIVE, build, run

HEADERS = Path("/usr/include/infiniband/verbs.h")
CM_HEADERS = Path("/usr/include/rdma/rdma_cma.h")


@pytest.mark.skipif(not HEADERS.exists(), reason="needs libibverbs-dev: run tools/setup.sh")
def test_it_stands_all_that_a_fake_device_does(tmp_path: Path) -> None:
    built = tmp_path / "_verbs.abi3.so"
    sources = [NATIVE / name for name in ("requester.c", "transfers.c", "operation.c", "links/rc_conn.c")]
    build([*sources, Path(__file__).with_name("fake_verbs.c")], built)
    assert "accesses of a fake device" in run("requester_process.py", str(built), "20181")


@pytest.mark.skipif(not CM_HEADERS.exists(), reason="needs librdmacm-dev: run tools/setup.sh")
def test_connections_stand_all_that_a_fake_librdmacm_does(tmp_path: Path) -> None:
    built = tmp_path / "_cm.abi3.so"
    sources = [NATIVE / name for name in ("cm_channel.c", "cm_id.c", "links/address.c", "links/cm_attrs.c")]
    build([*sources, Path(__file__).with_name("fake_rdmacm.c")], built)
    assert "events of a fake librdmacm" in run("cm_channel_process.py", str(built), "20181")


def test_without_librdmacm_the_error_says_what_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pondstack_rdma._cm", None)
    with pytest.raises(NoDevice, match=r"librdmacm-dev.*`python3 -c 'import pondstack_rdma._cm'`"):
        open_channel()


def test_without_its_module_the_error_says_which_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setitem(sys.modules, "pondstack_rdma._cm", SimpleNamespace(Channel=missing))  # type: ignore[arg-type]
    with pytest.raises(NoDevice, match=r"`rdma link`.*`modprobe rdma_ucm`"):
        open_channel()


def test_without_it_the_error_says_what_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pondstack_rdma._verbs", None)
    with pytest.raises(NoDevice, match=r"libibverbs-dev.*`python3 -c 'import pondstack_rdma._verbs'`"):
        native()
