"""A message is one line of the log, whatever names it has in it."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_log import log

from pondstack import logs


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """The log of a process that was set up as ours are; the handlers of the tests come back."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    conf([], default_config_files=[])
    conf.set_override("log_file", str(tmp_path / "process.log"))
    logs.setup(conf, "process")
    yield tmp_path / "process.log"
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def test_a_name_writes_no_line_of_its_own(path: Path) -> None:
    logger = log.getLogger("pondstack.somewhere")
    logger.error("Host %s reports %s", "h1\n2026-11-25 00:00:00.000 1 ERROR forged", "\x1b[2J")
    logger.error("plain")
    first, second = path.read_text().splitlines()
    assert first.endswith(r"Host h1\n2026-11-25 00:00:00.000 1 ERROR forged reports \x1b[2J")
    assert second.endswith("plain")


def test_a_traceback_keeps_its_lines(path: Path) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        log.getLogger("pondstack.somewhere").exception("It failed: %d of %d", 1, 2)
    lines = path.read_text().splitlines()
    assert "It failed: 1 of 2" in lines[0]
    assert any(line.endswith("ValueError: broken") for line in lines[1:])
    assert len(lines) > 3


@pytest.mark.parametrize(
    "path", ["pondstack/cmd/controller.py", "agent/pondstack_agent/cmd.py", "api/pondstack_api/wsgi.py"]
)
def test_each_process_logs_so(path: str) -> None:
    text = (Path(__file__).parents[2] / path).read_text()
    assert "logs.setup(" in text
    assert " log.setup(" not in text
