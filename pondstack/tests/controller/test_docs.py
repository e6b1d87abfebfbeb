"""Every finding that the controller can make is explained to operators, with its severity."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_each_finding_is_in_the_docs():
    source = "".join(path.read_text() for path in (ROOT / "pondstack" / "controller").rglob("*.py"))
    made = dict(re.findall(r'Finding\(\s*f?"(\w+)[^"]*", Severity\.(\w+)', source))
    page = (ROOT / "doc" / "source" / "admin" / "controller.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)\*?` \| (\w+) \|", page, re.MULTILINE))
    assert len(made) > 20
    assert told == {code: severity.lower() for code, severity in made.items()}
