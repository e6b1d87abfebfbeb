"""oslo.messaging counts queues that have a service's name under a lock, in a folder of the service's user alone."""

import pytest
from oslo_config import cfg

from pondstack.domain.errors import BadRequest
from pondstack.rpc import transport

URL = "rabbit://u:p@127.0.0.1:1/x"


@pytest.fixture(autouse=True)
def shared(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "SHARED", tmp_path)
    cfg.CONF.import_opt("lock_path", "oslo_concurrency.lockutils", group="oslo_concurrency")
    cfg.CONF.set_default("lock_path", None, group="oslo_concurrency")
    yield tmp_path
    cfg.CONF.set_default("lock_path", None, group="oslo_concurrency")


def make(url):
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    transport.get_oslo_transport(conf, url).cleanup()
    return cfg.CONF.oslo_concurrency.lock_path


def test_a_service_whose_queues_have_names_has_a_folder_of_its_own(shared):
    found = make(f"{URL}?use_queue_manager=true&hostname=h1")
    (folder,) = shared.iterdir()
    assert found == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert make(f"{URL}?use_queue_manager=true&hostname=h1") == found


def test_without_names_nothing_is_made(shared):
    assert make(URL) is None
    assert make(f"{URL}?use_queue_manager=false") is None
    assert list(shared.iterdir()) == []


def test_the_folder_that_a_service_is_configured_with_stays(shared):
    cfg.CONF.set_default("lock_path", "/of/nova", group="oslo_concurrency")
    assert make(f"{URL}?use_queue_manager=true&hostname=h1") == "/of/nova"
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("what", ["link", "open"])
def test_a_folder_of_somebody_else_is_refused(shared, what):
    make(f"{URL}?use_queue_manager=true&hostname=h1")
    cfg.CONF.set_default("lock_path", None, group="oslo_concurrency")
    (folder,) = shared.iterdir()
    if what == "open":
        folder.chmod(0o777)
    else:
        folder.rename(shared / "real")
        folder.symlink_to(shared / "real")
    with pytest.raises(BadRequest, match="not a folder of ours alone"):
        make(f"{URL}?use_queue_manager=true&hostname=h1")
