"""Decisions of nova-scheduler, as it tells them at DEBUG: each weigher's raw weights and scores, host by host."""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CPU, RAM, POND, IO_OPS = "CPUWeigher", "LocalRAMWeigher", "PondWeigher", "IoOpsWeigher"
_REQUEST = re.compile(r"\[\S+ (req-[0-9a-f-]+)")
_RAW = re.compile(r"(\w+): raw weights (\{.*?\})")
_SCORE = re.compile(r"(\w+): score \(multiplier \* weight\) (\{.*?\})")
_SELECTED = re.compile(r"\[instance: ([0-9a-f-]+)\] Selected host: \((\S+), ")


@dataclass(frozen=True, slots=True)
class Decision:
    """How nova-scheduler chose the host of a server: `hosts` that passed its filters, in the order that it had them in.

    `raw`, `scores`: by weigher, of each of `hosts`; a score is the multiplier times the normalised weight. Both are
    empty where one host alone passed: Nova weighs nothing then.
    """

    server: str
    host: str
    hosts: Sequence[str]
    raw: Mapping[str, Sequence[float]]
    scores: Mapping[str, Sequence[float]]

    @property
    def first(self) -> str:
        """The first host of the highest sum of scores, added up in Nova's order: what Nova takes."""
        sums = [0.0] * len(self.hosts)
        for scores in self.scores.values():
            sums = [sum_ + score for sum_, score in zip(sums, scores, strict=True)]
        return self.hosts[sums.index(max(sums))]


def decisions(lines: Iterable[str]) -> dict[str, Decision]:
    """Return the last decision on each server that nova-scheduler's log tells of."""
    open_: dict[str, tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]] = {}
    found: dict[str, Decision] = {}
    for line in lines:
        request = _REQUEST.search(line)
        if request is None:
            continue
        if told := _RAW.search(line):
            raw, scores = open_.setdefault(request[1], ({}, {}))
            if told[1] in raw:  # the hosts are weighed anew
                raw, scores = open_[request[1]] = ({}, {})
            raw[told[1]] = {host: float(value) for (host, _), value in ast.literal_eval(told[2]).items()}
        elif (told := _SCORE.search(line)) and request[1] in open_:
            open_[request[1]][1][told[1]] = {
                host: _product(value) for (host, _), value in ast.literal_eval(told[2]).items()
            }
        elif told := _SELECTED.search(line):
            raw, scores = open_.pop(request[1], ({}, {}))
            found[told[1]] = _decision(told[1], told[2], raw, scores)
    return found


def _product(text: str) -> float:
    multiplier, weight = text.split(" * ")
    return float(multiplier) * float(weight)


def _decision(
    server: str, host: str, raw: Mapping[str, Mapping[str, float]], scores: Mapping[str, Mapping[str, float]]
) -> Decision:
    hosts = list(next(iter(raw.values()), {host: 0.0}))
    return Decision(
        server,
        host,
        hosts,
        {name: [values[one] for one in hosts] for name, values in raw.items()},
        {name: [values[one] for one in hosts] for name, values in scores.items()},
    )
