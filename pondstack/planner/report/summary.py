"""The summary on one screen."""

from collections.abc import Iterator, Mapping
from typing import Any

from pondstack.planner.report import text

MOST_NOTES = 3
SIZE = 16
"""The pool that Pond's own figures are of (section 6.5), where it was asked for."""


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return at most a screen of text."""
    return [
        *_head(document),
        *_dram(document["answers"]),
        *_why(document["answers"]),
        *_others(document["answers"]),
        *_verdict(document),
    ]


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    trace, source = document["trace"], document["answers"]["source"]
    if label := text.label(document):
        yield label
    span = text.days(source["seconds"])
    yield f"{trace['name']} ({trace['origin']}): {source['servers']:,} servers in {span}; {text.hosts(trace)}"
    told = [*text.dropped(trace), *trace["notes"], *(f"assumed: {item}" for item in source["assumed"])]
    yield from (f"  {line}" for line in told[:MOST_NOTES])
    if len(told) > MOST_NOTES:
        yield f"  and {len(told) - MOST_NOTES} notes more: see the report"


def _dram(answers: Mapping[str, Any]) -> Iterator[str]:
    found = _of_size(answers["dram"])
    if not found:
        return
    size, seeds = found[0]["pool_sockets"], len(answers["seeds"])
    yield f"DRAM saved with a pool of {size} sockets ({seeds} seeds, {answers['settings']['confidence_percent']:g} %):"
    slow = {_key(item): item for item in answers["slowdown"]}
    money = {_key(item): item for item in answers["money"]}
    for item in found:
        saved, share = text.estimate(item["saved_percent"], "%"), text.estimate(item["pool_share_percent"], "%")
        line = f"  {item['policy']:7} {item['topology']:6} {saved:26} pool share {share:24}"
        if budget := slow.get(_key(item)):
            line += " slow " + text.estimate(budget["exceeding_percent"], "%", 2)
        if bought := money.get(_key(item)):
            line += f" {bought['verdict']}"
        yield line


def _why(answers: Mapping[str, Any]) -> Iterator[str]:
    _, *others = answers["counterfactuals"] or (None,)
    if others:
        gained = ", ".join(f"{item['variant']} {text.estimate(item['saved_percent'], '%')}" for item in others)
        yield f"  {others[0]['policy']} if: {gained}"


def _others(answers: Mapping[str, Any]) -> Iterator[str]:
    for item in _of_size(answers["offlining"])[:1]:
        yield f"offlining speed for 99.99 % of starts: {text.estimate(item['p99_99'], 'GiB/s', 2)}"
    for item in _of_size(answers["failures"])[:1]:
        if item["interruptions"]["mean"]:
            reach, lost = text.estimate(item["servers_per_pool"]), text.estimate(item["not_restarted_percent"], "%", 2)
            often, before = text.estimate(item["interruptions"]), text.number(item["without_pool"])
            yield f"interruptions per 1,000 server-years ({item['policy']}): {often}, without a pool {before}"
            yield f"  servers that a pool's failure ends: {reach}; restarts without a host: {lost}"
    for history in dict.fromkeys(item["history"] for item in answers["energy"]):
        systems = [item for item in answers["energy"] if item["history"] == history and item["system"] != "none"]
        saved = ", ".join(f"{item['system']} {text.estimate(item['saved_percent'], '%')}" for item in systems)
        yield f"energy saved, {history} history: {saved}"
    if answers["tiering"]:
        yield "memory with an SSD tier costs less by: " + ", ".join(
            f"{text.number(item['saved_percent'])} % at R = {item['overcommit_ratio']:g}" for item in answers["tiering"]
        )


def _verdict(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"Verdict: {document['answers']['verdict']}"
    yield f"Made by: {document['command']}"


def _of_size(items: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those of the pool size that is shown: Pond's, else the largest."""
    sizes = {item["pool_sockets"] for item in items}
    wanted = SIZE if SIZE in sizes else max(sizes, default=0)
    return [item for item in items if item["pool_sockets"] == wanted]


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return item["policy"], item["topology"], item["pool_sockets"]
