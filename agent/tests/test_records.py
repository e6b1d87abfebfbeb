"""Records on disk."""

import stat
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, DeviceFailed
from pondstack_agent.records import Records


def test_put_get_remove(tmp_path: Path) -> None:
    records = Records(tmp_path / "made" / "at once")
    assert records.get("a") is None
    records.put("a", {"n": 1})
    records.put("a", {"n": 2})
    assert Records(records.folder).get("a") == {"n": 2}
    assert records.remove("a") is True
    assert records.remove("a") is False
    assert records.all() == {}


@pytest.mark.parametrize("before", [None, 0o755])
def test_nobody_else_sees_what_is_on_record(tmp_path: Path, before: int | None) -> None:
    """Names tell allocations and operations. A folder that an older agent made is closed, too."""
    if before is not None:
        (tmp_path / "records").mkdir(mode=before)
    records = Records(tmp_path / "records")
    records.put("a", {})
    assert stat.S_IMODE(records.folder.stat().st_mode) in (0o700, 0o750)
    assert not stat.S_IMODE(records.folder.stat().st_mode) & stat.S_IRWXO
    assert stat.S_IMODE(records.path("a").stat().st_mode) == 0o600


@pytest.mark.parametrize("key", ["/etc/passwd", "a/../../b", "ü %2F", "x" * 150])
def test_any_key_stays_in_the_folder(tmp_path: Path, key: str) -> None:
    records = Records(tmp_path / "records")
    records.put(key, {})
    assert records.all() == {key: {}}
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "records"]


@pytest.mark.parametrize("key", ["", "..", ".hidden", "x" * 201])
def test_keys_that_are_no_file_names(tmp_path: Path, key: str) -> None:
    with pytest.raises(BadRequest, match="use a UUID"):
        Records(tmp_path).put(key, {})


@pytest.mark.parametrize("content", ["", "{", "[]", "7"])
def test_a_damaged_record_names_its_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DeviceFailed, match=r"a\.json is damaged"):
        Records(tmp_path).all()


def test_what_a_crash_left_of_a_write_is_not_a_record(tmp_path: Path) -> None:
    (tmp_path / ".a.json.x1y2").write_text('{"n"')
    assert Records(tmp_path).all() == {}
