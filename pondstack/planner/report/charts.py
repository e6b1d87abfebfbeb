"""Charts as inline SVG, by matplotlib. Colours by Okabe and Ito, told apart by marker, line and order as well."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pondstack.planner.report.text import number

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
MARKERS, DASHES = "osD^vPX", ("-", "--", "-.", ":", "-", "--", "-.")
SIZE_INCHES = (7.2, 3.4)
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pondstack",
    "font.family": "sans-serif",
    "font.size": 9,
}
Item = Mapping[str, Any]


def stranding(items: Sequence[Item]) -> str:
    """Return stranded memory by vCPUs sold (Pond, Fig. 2): the median, and from the 5th to the 95th percentile."""

    def draw(axes: Axes) -> None:
        middle = [(item["from_percent"] + item["to_percent"]) / 2 for item in items]
        median = [item["median_percent"] for item in items]
        below = [item["median_percent"] - item["p5_percent"] for item in items]
        above = [item["p95_percent"] - item["median_percent"] for item in items]
        axes.errorbar(middle, median, yerr=[below, above], color=COLOURS[0], marker=MARKERS[0], capsize=3)
        axes.set(xlabel="vCPUs sold, %", ylabel="DRAM stranded, %")

    return _svg("Stranded DRAM by core utilisation", draw)


def saved(items: Sequence[Item]) -> str:
    """Return DRAM saved by pool size, a line for each policy and topology, a small point for each seed."""
    return _svg("DRAM saved by pool size", _by_size(items, "saved_percent", "DRAM saved, %"))


def net(items: Sequence[Item]) -> str:
    """Return money saved per socket by pool size."""
    return _svg("Net saving by pool size", _by_size(items, "net_saved", "net saving per socket, $"))


def _by_size(items: Sequence[Item], value: str, title: str) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        groups = list(dict.fromkeys((item["policy"], item["topology"]) for item in items))
        sizes = sorted({item["pool_sockets"] for item in items})
        for place, group in enumerate(groups):
            own = [item for item in items if (item["policy"], item["topology"]) == group]
            # Beside each other, so that points and intervals of one size do not hide each other.
            at = [sizes.index(item["pool_sockets"]) + (place - (len(groups) - 1) / 2) * 0.12 for item in own]
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            for x, item in zip(at, own, strict=True):
                seeds = item[value]["by_seed"]
                axes.plot([x] * len(seeds), seeds, ".", color=colour, alpha=0.45, markersize=3)
            _interval(axes, at, [item[value] for item in own], colour, marker, DASHES[place % len(DASHES)], group)
        axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
        axes.axhline(0, color="#666666", linewidth=0.8)
        axes.set(xlabel="sockets of a pool", ylabel=title)
        axes.legend(frameon=False)

    return draw


def _interval(
    axes: Axes, at: Sequence[float], values: Sequence[Item], colour: str, marker: str, dash: str, group: Sequence[str]
) -> None:
    mean = [value["mean"] for value in values]
    below = [max(0.0, value["mean"] - value["low"]) for value in values]
    above = [max(0.0, value["high"] - value["mean"]) for value in values]
    axes.errorbar(
        at, mean, yerr=[below, above], color=colour, marker=marker, linestyle=dash, capsize=3, label=", ".join(group)
    )


def energy(items: Sequence[Item]) -> str:
    """Return energy saved by way of consolidation and history (Zombieland, Fig. 10)."""

    def draw(axes: Axes) -> None:
        histories = list(dict.fromkeys((item["history"], item["profile"]) for item in items))
        systems = list(dict.fromkeys(item["system"] for item in items))
        width = 0.8 / len(systems)
        for place, system in enumerate(systems):
            own = {
                (item["history"], item["profile"]): item["saved_percent"] for item in items if item["system"] == system
            }
            for x, key in enumerate(histories):
                if key not in own:
                    continue
                value, left = own[key], x - 0.4 + (place + 0.5) * width
                error = [[max(0.0, value["mean"] - value["low"])], [max(0.0, value["high"] - value["mean"])]]
                label = system if x == 0 else None
                axes.bar(left, value["mean"], width, yerr=error, capsize=3, color=COLOURS[place], label=label)
                axes.text(left, value["high"], f"{system} {number(value['mean'], 0)}", ha="center", va="bottom")
        axes.set_xticks(range(len(histories)), [", ".join(key) for key in histories])
        axes.set(ylabel="energy saved, %")
        axes.margins(y=0.15)

    return _svg("Energy saved by consolidation", draw)


def tiering(items: Sequence[Item]) -> str:
    """Return what memory with an SSD tier saves by overcommit ratio (hybrid pool, Fig. 7)."""

    def draw(axes: Axes) -> None:
        ratios = [item["overcommit_ratio"] for item in items]
        axes.plot(ratios, [item["saved_percent"] for item in items], color=COLOURS[0], marker=MARKERS[0])
        axes.set(xlabel="overcommit ratio R", ylabel="cost of memory saved, %")

    return _svg("Cost saved with an SSD tier", draw)


def _svg(title: str, draw: Callable[[Axes], None]) -> str:
    """Return the element alone, with its title as the text alternative; what it shows is in the table beside it."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        draw(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # One page has several: their ids must not meet.
    mark = re.sub(r"\W+", "-", title.lower())
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{mark}-", text)
    return re.sub(
        r"<svg ([^>]*)>",
        rf'<svg \1 role="img" aria-label="{title}; the table below has its figures"><title>{title}</title>',
        text,
        count=1,
    )
