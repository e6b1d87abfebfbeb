"""The report as one page of HTML, which needs nothing from elsewhere: it can be read offline, and sent by mail."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import jinja2
from markupsafe import Markup

from pondstack.planner.report import charts, text
from pondstack.planner.report.tables import table
from pondstack.planner.settings import Settings

Item = Mapping[str, Any]
SECTIONS: tuple[tuple[str, str, str, Callable[[Sequence[Item]], str] | None], ...] = (
    (
        "dram",
        "DRAM needed with a pool",
        "Against the least uniform DRAM per socket with the same rejections. Small points are seeds, bars intervals. "
        "The effective pool share is what whole slices left of what the policy wanted.",
        charts.saved,
    ),
    (
        "counterfactuals",
        "Why Pond's policy saves no more",
        "What it would save if one thing were otherwise: smaller slices, no slices kept free, or the same share of all "
        "servers of one size, which leaves the pool share as it is. Measurements of the cause: no such policy exists.",
        None,
    ),
    (
        "size_classes",
        "Pool share by size of server",
        "Whole slices that the policy wants, of servers up to that size and over half of it, all seeds together.",
        None,
    ),
    ("money", "What it saves and costs", "Per socket, over the lifetime. Prices are settings below.", charts.net),
    ("stranding", "Stranded DRAM", "Free memory on sockets without free vCPUs (Pond, Fig. 2).", charts.stranding),
    ("slowdown", "Slowdown budget", "Servers slower than the PDM, after QoS (Pond, sections 4.4 and 6.5).", None),
    ("offlining", "Offlining speed needed", "So that no start waits for memory (Pond, Finding 10).", None),
    (
        "failures",
        "What a failure reaches",
        "Servers that the failure of one host and of one pool ends, mean over time: a pool's ends those that have "
        "memory there (Pond, section 4.2). Interruptions are per 1,000 server-years, by the rates in the settings. "
        "Failures that are replayed count in all figures: who is ended starts again at once, if a host has room.",
        None,
    ),
    (
        "energy",
        "Energy by consolidation",
        "Power of states by Zombieland, Table 3. Oasis gains on Neat by idle servers only, whose memory stays behind, "
        "and each of its memory servers takes power all the time: with few idle servers, or memory to spare on hosts, "
        "it saves no more than Neat.",
        charts.energy,
    ),
    ("tiering", "Memory with an SSD tier", "Total cost of memory, hybrid pool, Eq. 1 and 2.", charts.tiering),
)


def html(document: Mapping[str, Any]) -> str:
    """Return the page."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("pondstack.planner.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    answers = document["answers"]
    return found.get_template("page.html").render(
        document=document,
        source=answers["source"],
        seeds=", ".join(map(str, answers["seeds"])),
        confidence=f"{answers['settings']['confidence_percent']:g}",
        synthetic=text.label(document),
        hosts=text.hosts(document["trace"]),
        days=text.days(answers["source"]["seconds"]),
        dropped=text.dropped(document["trace"]),
        sections=[_section(answers, *section) for section in SECTIONS if answers[section[0]]],
        settings=_settings(answers["settings"]),
    )


def _section(
    answers: Mapping[str, Any], kind: str, title: str, about: str, chart: Callable[[Sequence[Item]], str] | None
) -> dict[str, Any]:
    items = answers[kind]
    # matplotlib escapes what it draws.
    drawn = None if chart is None else Markup(chart(items))
    return {"id": kind, "title": title, "about": about, "chart": drawn, "table": table(kind, items)}


def _settings(values: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    rows = []
    for item in fields(Settings):
        value = values[item.name]
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        about = item.metadata
        rows.append((item.name, shown, about["unit"], about["help"], about["source"]))
    return rows
