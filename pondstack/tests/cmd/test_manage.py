"""pondstack-manage and pondstack-status as an operator meets them."""

import json
import socket
import sys
from pathlib import Path

import pytest

from pondstack.cmd import manage, status
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.store import SQL, registry
from pondstack.devices.heads import machine_id, read_heads
from pondstack.domain.causes import Cause
from pondstack.ledger.ledger import Ledger
from tests.fixtures import lead, sample_models
from tests.fixtures.identities import Identities


@pytest.fixture
def configuration(tmp_path):
    path = tmp_path / "pondstack.conf"
    text = (
        f"[database]\nconnection = sqlite:///{tmp_path}/ledger.db\n[controller]\npool_devices = pool0=emulated:/x\n"
        "[placement]\nauth_type = none\n"
        + Identities(tmp_path / "credentials").section(f"controller/{socket.gethostname()}")
    )
    path.write_text(text)
    return path


def manage_(path, *words):
    return manage.run(["--config-file", str(path), *words])


def check(path):
    return status.run(["--config-file", str(path), "upgrade", "check"])


def test_db_sync_and_version(configuration, capsys):
    assert manage_(configuration, "db", "version") == 0
    assert capsys.readouterr().out == f"empty (newest: {migration.head()})\n"
    assert manage_(configuration, "db", "sync") == 0
    assert manage_(configuration, "db", "sync") == 0
    assert manage_(configuration, "db", "version") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{migration.head()} (newest: {migration.head()})"


def test_a_database_that_is_not_configured_is_told(tmp_path, capsys):
    (tmp_path / "empty.conf").write_text("")
    assert manage_(tmp_path / "empty.conf", "db", "version") == 1
    assert "connection" in capsys.readouterr().err


def test_device_create_may_be_repeated_and_refuses_another_shape(tmp_path, capsys):
    words = ["device", "create", str(tmp_path / "pool0"), "--slices", "4", "--serial", "S1"]
    assert manage.run(words) == 0
    assert manage.run(words) == 0
    assert "device S1, 4 slices of 1024 MiB, pool " in capsys.readouterr().out
    assert json.loads((tmp_path / "pool0" / "device.json").read_text())["slices_total"] == 4
    assert manage.run([*words[:-3], "8"]) == 1
    assert "use another folder" in capsys.readouterr().err


@pytest.mark.parametrize("slices", ["0", "-1", "x"])
def test_device_create_refuses_nonsense(tmp_path, slices):
    with pytest.raises(SystemExit):
        manage.run(["device", "create", str(tmp_path / "pool0"), "--slices", slices])


def test_upgrade_check_fails_without_a_schema(configuration, capsys):
    assert check(configuration) == 2
    assert "run pondstack-manage db sync" in capsys.readouterr().out


def test_upgrade_check_succeeds_and_warns(configuration, tmp_path, capsys):
    manage_(configuration, "db", "sync")
    assert check(configuration) == 0
    database = Database.from_url(f"sqlite:///{tmp_path}/ledger.db")
    ledger = Ledger(database, lead(database, "test"), store=SQL)
    pool = {"uuid": "u", "name": "pool0", "serial": "S", "driver": "d", "address": {}, "slice_mib": 1024}
    ledger.pools.register(**pool, slices_total=2)
    ledger.slices.quarantine("u", [1], Cause.SANITIZE_FAILED, "EIO")
    assert check(configuration) == 1
    assert "quarantined slices: {'pool0': 1}" in capsys.readouterr().out


def test_upgrade_check_warns_of_models_that_may_risk_nothing_more(configuration, tmp_path, capsys):
    manage_(configuration, "db", "sync")
    database = Database.from_url(f"sqlite:///{tmp_path}/ledger.db")

    def note(left):
        told = {"budget": {"left": left, "text": "12 of 600 instances that models decided were mispredicted"}}
        database.write(lambda session: registry.note_serving(session, sample_models.RUNNING, told))

    database.write(sample_models.store)
    assert check(configuration) == 0
    note(-0.5)
    assert check(configuration) == 1
    assert "budget is used up" in capsys.readouterr().out
    note(0.5)
    assert check(configuration) == 0


def test_upgrade_check_reads_the_devices(configuration, capsys):
    manage_(configuration, "db", "sync")
    text = configuration.read_text()
    configuration.write_text(text.replace("pool0=emulated:/x", "pool0"))
    assert check(configuration) == 2
    assert "name=driver:address" in capsys.readouterr().out
    configuration.write_text(text.replace("pool0=emulated:/x", ""))
    assert check(configuration) == 1


def test_device_head_is_listed_and_struck_out(configuration, tmp_path, capsys):
    device = str(tmp_path / "pool0")
    assert manage_(configuration, "device", "head", device, "host1", "--monitor", "/m", "--device", "pool0") == 1
    assert "device create" in capsys.readouterr().err
    assert manage_(configuration, "device", "create", device, "--slices", "2") == 0
    for _ in range(2):
        assert manage_(configuration, "device", "head", device, "host1", "--monitor", "/m", "--device", "pool0") == 0
    head = read_heads(tmp_path / "pool0")["host1"]
    assert (head.monitor, head.device, head.machine) == ("/m", "pool0", machine_id())
    assert manage_(configuration, "device", "head", device, "host2", "--device", "pool0") == 1
    assert "--monitor" in capsys.readouterr().err
    assert manage_(configuration, "device", "head", device, "host1", "--remove") == 0
    assert read_heads(tmp_path / "pool0") == {}


@pytest.fixture
def nova(tmp_path, monkeypatch):
    """A Nova that this Python would load."""
    folder = tmp_path / "nova" / "virt"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "driver.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nova", raising=False)
    return folder


def test_nova_is_linked_and_unlinked_and_both_may_be_repeated(nova, capsys):
    for _ in range(2):
        assert manage.run(["nova", "link"]) == 0
    assert "pond.PondLibvirtDriver" in capsys.readouterr().out
    assert "from pondstack_nova.drivers import" in (nova / "pond.py").read_text()
    for _ in range(2):
        assert manage.run(["nova", "unlink"]) == 0
    assert not (nova / "pond.py").exists()


@pytest.mark.parametrize("verb", ["link", "unlink"])
def test_a_link_that_is_interrupted_can_be_repeated_and_undone(nova, monkeypatch, verb):
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", lambda *_: pytest.fail("interrupted"))
        with pytest.raises(pytest.fail.Exception):
            manage.run(["nova", "link"])
    assert not (nova / "pond.py").exists()
    assert manage.run(["nova", verb]) == 0
    assert (nova / "pond.py").exists() is (verb == "link")
    assert not (nova / "pond.py.new").exists()


@pytest.mark.parametrize("verb", ["link", "unlink"])
def test_a_strangers_module_in_nova_is_left_alone(nova, capsys, verb):
    (nova / "pond.py").write_text("mine")
    assert manage.run(["nova", verb]) == 1
    assert "is not pondstack's: move it away" in capsys.readouterr().err
    assert (nova / "pond.py").read_text() == "mine"


def test_without_a_nova_that_is_said(nova, capsys):
    (nova / "driver.py").unlink()
    assert manage.run(["nova", "link"]) == 1
    assert "this Python finds no Nova" in capsys.readouterr().err
