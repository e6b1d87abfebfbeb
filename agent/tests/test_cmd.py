"""`pondstack-agent` before it serves."""

from pathlib import Path

import pytest

from pondstack.domain.errors import DeviceFailed
from pondstack_agent import cmd
from pondstack_agent.records import Records
from pondstack_agent.state_check import check_state
from tests.security.fuzzers.state_samples import SAMPLES


def test_a_damaged_record_ends_it_with_one_line_that_names_the_file(
    conf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later, oslo.service would fork a new worker for ever, each of which fails with a traceback."""
    [(key, record)] = SAMPLES["tiering-order"].items()
    records = Records(tmp_path / "state" / "tiering-order")
    records.put(key, record)
    monkeypatch.setattr(cmd, "configure", lambda _arguments: conf)
    monkeypatch.setattr(cmd, "border_of", lambda *_arguments: None)
    monkeypatch.setattr(cmd, "separate", lambda _conf: None)
    monkeypatch.setattr(cmd.cfg, "CONF", lambda *_arguments, **_named: None)
    monkeypatch.setattr(cmd.core_dumps, "forbid", lambda: None)
    launched: list[object] = []
    monkeypatch.setattr(cmd, "AgentService", lambda *_arguments: launched.append("it"))
    monkeypatch.setattr(cmd.service, "launch", lambda *_arguments: type("Done", (), {"wait": lambda _self: 0})())
    assert cmd.main() == 0
    records.path(key).write_text('{"on": "yes"}')
    with pytest.raises(SystemExit) as ended:
        cmd.main()
    assert launched == ["it"]
    assert str(ended.value).startswith("pondstack-agent: the agent's state file")
    assert str(records.path(key)) in str(ended.value)
    assert "\n" not in str(ended.value)


def test_a_new_host_has_no_records(tmp_path: Path) -> None:
    assert check_state(tmp_path / "none") == 0
    (tmp_path / "marks").mkdir()
    (tmp_path / "marks" / "epoch.json").write_text("{}")
    with pytest.raises(DeviceFailed, match="lacks seen"):
        check_state(tmp_path)
