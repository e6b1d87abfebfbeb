"""The process that replays, `python -m pondstack.planner.job.worker FOLDER`: files in, files out.

The folder holds order.json, and of a cloud's own history instances.jsonl and window.json. It leaves progress.json on
the way, then summary.txt, page.html and answers.json, the last of which makes the result whole, or error.txt. It ends
when its parent does: its standard input is closed then.
"""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pondstack import bounded_process
from pondstack.domain.errors import BadRequest, PondError
from pondstack.planner.job.order import Order, Source
from pondstack.planner.settings import Settings

ORDER, INSTANCES, WINDOW, PROGRESS = "order.json", "instances.jsonl", "window.json", "progress.json"
SUMMARY, PAGE, ANSWERS, ERROR = "summary.txt", "page.html", "answers.json", "error.txt"


def work(folder: Path) -> None:
    """Replay what the folder's order asks for."""
    from pondstack.planner.answers import answer
    from pondstack.planner.report import document, page, summary

    order = Order.from_record(json.loads((folder / ORDER).read_text()))
    found = _trace(folder, order)
    settings = _settings(order, found)
    try:
        answers = answer(found.trace, settings, progress=lambda done, total: _tell(folder, done, total))
    except ValueError as error:
        raise BadRequest(str(error)) from error
    made = document.made(found, answers, order.command(), datetime.now(UTC))
    (folder / SUMMARY).write_text("\n".join(summary.lines(made)))
    (folder / PAGE).write_text(page.html(made))
    document.write(made, folder / ANSWERS)


def _tell(folder: Path, done: int, total: int) -> None:
    draft = folder / f"{PROGRESS}.new"
    draft.write_text(json.dumps([done, total]))
    draft.replace(folder / PROGRESS)


def _settings(order: Order, found: Any) -> Settings:
    hosts = found.hosts
    if hosts is None:
        return Settings(**order.settings)
    return Settings.of_hosts(
        order.settings,
        number=hosts.number,
        vcpus=hosts.vcpus,
        memory_mib=hosts.memory_mib,
        sockets_per_host=order.sockets_per_host,
    )


def _trace(folder: Path, order: Order) -> Any:
    from pondstack.planner.traces import synthetic

    if order.source is Source.GENERATED:
        return synthetic.generate(synthetic.Model(order.servers, order.days), order.trace_seed)
    return _of_cloud(folder)


def _of_cloud(folder: Path) -> Any:
    from pondstack.planner.traces import cloud, instances
    from pondstack.planner.traces.imported import Hosts, Options

    told = json.loads((folder / WINDOW).read_text())
    window = instances.Window(datetime.fromisoformat(told["since"]), datetime.fromisoformat(told["until"]))
    found = list({item.uuid: item for item in _instances(folder)}.values())
    known = sum(item.untouched_percent is not None for item in found)
    synthetic = f"; {told['synthetic']} of them are SYNTHETIC" if told["synthetic"] else ""
    notes = [cloud.NOTE, f"untouched memory is known of {known} instances, by pondstack's history{synthetic}"]
    hosts = Hosts(**told["hosts"])
    return instances.imported("this cloud", found, window, Options("this cloud"), cloud.PONDSTACK, notes, hosts)


def _instances(folder: Path) -> Iterator[Any]:
    """Yield them as Nova told; of an instance that it told of twice, what came last counts."""
    from pondstack.planner.traces.instances import Instance

    with (folder / INSTANCES).open() as lines:
        for line in lines:
            found = json.loads(line)
            times = {name: found[name] and datetime.fromisoformat(found[name]) for name in ("started", "ended")}
            yield Instance(**{**found, **times})


def main() -> int:
    """Work in the folder of the command line; 1 with error.txt where that cannot be done."""
    folder = Path(sys.argv[1])
    bounded_process.end_with_parent()
    try:
        work(folder)
    except MemoryError:
        text = "it needs more memory than [planner] memory_mib allows: raise that option, or ask for less"
    except ImportError as error:
        last = str(error).strip().splitlines()[-1]
        hint = (
            "install pondstack with the extra planner (pip install 'pondstack[planner]'), or raise [planner] memory_mib"
        )
        text = f"{last}: {hint}"
    except PondError as error:
        text = error.message
    else:
        return 0
    (folder / ERROR).write_text(text)
    return 1


if __name__ == "__main__":
    sys.exit(main())
