"""`pondstack-manage credentials`: issued once, renewed, revoked; and what the status check says of them."""

import datetime
from pathlib import Path

import pytest

from pondstack.cmd import manage, status
from pondstack.db.connection.engine import Database
from pondstack.db.store import revocations
from pondstack.rpc.identity.credential import Credential


@pytest.fixture
def folders(tmp_path):
    return ["--folder", str(tmp_path / "credentials"), "--authority", str(tmp_path / "authority")]


def issue(folders, *words):
    return manage.run(["credentials", "issue", *words, *folders])


def test_they_are_issued_once(tmp_path, folders, capsys):
    assert issue(folders, "agent/h1", "compute/h1") == 0
    path = tmp_path / "credentials" / "agent-h1.pem"
    first = path.read_bytes()
    assert issue(folders, "agent/h1") == 0
    assert path.read_bytes() == first
    assert "nothing was done" in capsys.readouterr().out
    assert issue(folders, "--renew", "agent/h1") == 0
    assert path.read_bytes() != first


def test_one_that_ends_soon_or_is_another_authoritys_is_issued_anew(tmp_path, folders):
    assert issue(folders, "agent/h1", "--days", "20") == 0
    path = tmp_path / "credentials" / "agent-h1.pem"
    short = path.read_bytes()
    assert issue(folders, "agent/h1") == 0
    left = Credential.load(path).certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert left.days > 300
    assert path.read_bytes() != short
    folders[3] = str(tmp_path / "other")
    before = path.read_bytes()
    assert issue(folders, "agent/h1") == 0
    assert path.read_bytes() != before
    path.write_text("junk")
    assert issue(folders, "agent/h1") == 0
    assert Credential.load(path)


def test_bad_input_changes_nothing(tmp_path, folders, capsys):
    assert issue(folders, "agent/h1", "root/h1") == 1
    assert "root/h1" in capsys.readouterr().err
    assert not (tmp_path / "credentials").exists()
    assert not (tmp_path / "authority").exists()


def test_they_are_listed_without_their_keys(folders, capsys):
    assert issue(folders, "agent/h1") == 0
    (Path(folders[1]) / "api-x.pem").write_text("junk")
    capsys.readouterr()
    assert manage.run(["credentials", "list", "--folder", folders[1]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("agent-h1.pem: agent/h1, until 20")
    assert "issue it anew" in lines[1]
    assert "KEY" not in "".join(lines)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "pondstack.conf"
    path.write_text(
        f"[DEFAULT]\ntransport_url = rabbit://127.0.0.1\n[database]\nconnection = sqlite:///{tmp_path}/ledger.db\n"
        f"[controller]\nname = c1\npool_devices = p=emulated:/x\n"
        f"[pondstack_identity]\nfolder = {tmp_path}/credentials\n"
    )
    assert manage.run(["--config-file", str(path), "db", "sync"]) == 0
    return path


def test_a_revocation_says_since_when_and_is_renewed(config, capsys):
    assert manage.run(["--config-file", str(config), "credentials", "revoke", "agent/h1"]) == 0
    assert "--renew agent/h1" in capsys.readouterr().out
    assert manage.run(["--config-file", str(config), "credentials", "revoke", "agent/h1"]) == 0
    database = Database.from_url(f"sqlite:///{config.parent}/ledger.db")
    found = database.read(revocations.revocations)
    database.dispose()
    assert found.keys() == {"agent/h1"}
    assert found["agent/h1"] == int(found["agent/h1"]) > 1.7e9
    assert manage.run(["--config-file", str(config), "credentials", "revoke", "h1"]) == 1


def check(config, capsys):
    status.run(["--config-file", str(config), "upgrade", "check"])
    return next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Identity"))


def test_the_status_check_is_loud_about_what_is_missing_ends_or_is_permissive(config, folders, capsys):
    assert "Failure" in check(config, capsys)
    assert issue(folders, "controller/c1", "--days", "10") == 0
    assert "ends in 9 days" in check(config, capsys)
    assert issue(folders, "controller/c1") == 0
    assert check(config, capsys).split() == ["Identity", "Success"]
    text = config.read_text()
    config.write_text(f"{text}permissive_until = 2999-01-01\n")
    assert "Warning" in (line := check(config, capsys))
    assert "2999-01-01" in line
    config.write_text(f"{text}permissive_until = 2001-01-01\n")
    assert check(config, capsys).split() == ["Identity", "Success"]
    config.write_text(f"{text}permissive_until = 2001-13-01\n")
    assert "2001-13-01" in check(config, capsys)
