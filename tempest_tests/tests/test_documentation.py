"""doc/source/contributor/tempest.md names every option, with its default, and every variable of `make tempest`."""

import re
from pathlib import Path

import pytest
from oslo_config import cfg

from pondstack_tempest import config

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "doc/source/contributor/tempest.md").read_text()


@pytest.mark.parametrize("option", [config.SERVICE_AVAILABLE, *config.OPTIONS], ids=lambda option: option.name)
def test_each_option_is_documented_with_its_default(option: cfg.Opt) -> None:
    (default,) = re.findall(rf"^\| `{option.name}` \| ([^|]*)\|", PAGE, re.MULTILINE)
    if option.name == "console_node_regex":
        assert default.strip() == "what Linux prints"
    else:
        shown = str(option.default).lower() if option.default not in ("", []) else ""
        assert default.strip() == shown


def test_each_documented_option_exists() -> None:
    options = PAGE.split("## Options")[1]
    named = set(re.findall(r"^\| `(\w+)` \|", options, re.MULTILINE))
    assert named == {option.name for option in (config.SERVICE_AVAILABLE, *config.OPTIONS)}


def test_each_variable_of_make_is_documented() -> None:
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "$(RACK) tempest" in line]
    for variable in set(re.findall(r"\b[A-Z]{4,}\b", line)) - {"RACK"}:
        assert f"| `{variable}` |" in PAGE
