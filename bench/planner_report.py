"""The report of pondstack-planner on the trace that ships, SYNTHETIC, and whether it holds: `make planner`.

It holds when it has every part, each figure has an interval and a value for each of at least 10 seeds, costs of tiers
are those of the hybrid pool's paper, the page loads nothing from elsewhere, and all of it says that it is synthetic.
"""

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pondstack.cmd import planner
from pondstack.planner.report import document

LEAST_SEEDS = 10
KINDS = (
    "dram",
    "counterfactuals",
    "size_classes",
    "money",
    "stranding",
    "slowdown",
    "offlining",
    "failures",
    "energy",
    "tiering",
)
PAPER_SAVED_PERCENT = {1.5: 32.2, 4.0: 72.5}
"""Hybrid pool, section III.F and Fig. 7: total cost of memory saved, by overcommit ratio."""
ELSEWHERE = re.compile(r"<(?:script|link|iframe|img|object|embed)\b|@import|(?:src|href)=\"(?!#)|url\((?!#)")
MOST_SECONDS = 120.0


def estimates(value: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every estimate of the answers with where it is."""
    if isinstance(value, dict) and "by_seed" in value:
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from estimates(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from estimates(inner, f"{name}[{number}]")


def faults(made: document.Document, page: str) -> Iterator[str]:
    """Yield what does not hold of a report."""
    answers = made["answers"]
    if len(set(answers["seeds"])) < LEAST_SEEDS:
        yield f"{len(set(answers['seeds']))} seeds, {LEAST_SEEDS} are wanted"
    for kind in KINDS:
        if not answers[kind]:
            yield f"no answers of {kind}"
        if f'<section id="{kind}">' not in page:
            yield f"the page has no section of {kind}"
    for name, value in estimates(answers):
        if len(value["by_seed"]) != len(answers["seeds"]):
            yield f"{name} has {len(value['by_seed'])} values for {len(answers['seeds'])} seeds"
        if not value["low"] <= value["mean"] <= value["high"]:
            yield f"{name}: {value['mean']} is outside of its interval, {value['low']} to {value['high']}"
    found = {item["overcommit_ratio"]: item["saved_percent"] for item in answers["tiering"]}
    for ratio, wanted in PAPER_SAVED_PERCENT.items():
        if ratio not in found or abs(found[ratio] - wanted) > 0.05:
            yield f"tiers at R = {ratio:g} save {found.get(ratio)} %, the paper has {wanted} %"
    if elsewhere := ELSEWHERE.search(page):
        yield f"the page loads something from elsewhere: {page[elsewhere.start() : elsewhere.start() + 80]!r}"
    if not answers["source"]["synthetic"] or '<p class="label">SYNTHETIC' not in page:
        yield "it does not say that it is synthetic"
    if made["command"] not in page.replace("&#39;", "'"):
        yield "the page does not have its command"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when the report holds."""
    parser = argparse.ArgumentParser(prog="make planner", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("reports"), help="where the report goes (REPORTS)")
    parser.add_argument("--servers", type=int, default=3000, help="to generate (SERVERS)")
    parser.add_argument("--days", type=int, default=7, help="to generate (DAYS)")
    parser.add_argument("--seeds", type=int, default=LEAST_SEEDS, help="how many (SEEDS)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (JOBS)")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    json, html = options.folder / "planner.json", options.folder / "planner.html"
    begun = time.monotonic()
    seeds = ",".join(str(number) for number in range(1, options.seeds + 1))
    words = ["run", "--servers", str(options.servers), "--days", str(options.days), "--seeds", seeds]
    words += ["--pool-sockets", "8,16", "--jobs", str(options.jobs), "--json", str(json), "--html", str(html)]
    if code := planner.main(words):
        return code
    seconds = time.monotonic() - begun
    made, page = document.read(json), html.read_text()
    wrong = list(faults(made, page))
    for text in wrong:
        print(f"MISSED: {text}", file=sys.stderr)
    count = sum(1 for _ in estimates(made["answers"]))
    print(
        f"{'MISSED' if wrong else 'HELD'}: {count} estimates of {len(made['answers']['seeds'])} seeds, "
        f"{len(page) // 1024} KiB of HTML, in {seconds:.0f} s (aim: {MOST_SECONDS:.0f} s on two free cores): {html}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
