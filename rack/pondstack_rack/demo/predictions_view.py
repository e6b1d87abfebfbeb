"""Shows what predictions did on the rack as a table, which says that its figures are synthetic."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pondstack_rack.demo.predictions import Outcome
from pondstack_rack.demo.tenancy import FLAVOR, MEMORY_MIB

WIDTH = 120


def show(outcome: Outcome, wrong: list[str]) -> None:
    """Print everything to standard output; colours only where it is a terminal."""
    console = Console(width=None if Console().is_terminal else WIDTH, highlight=False)
    title = f"SYNTHETIC traces; flavor {FLAVOR}, {MEMORY_MIB} MiB; model {outcome.model}"
    table = Table(title=title, title_justify="left")
    for heading in ("VM", "pool MiB", "untouched MiB", "over-predicted", "reason, as in openstack memory split show"):
        table.add_column(heading)
    for item in (*outcome.past, outcome.without, outcome.known, outcome.after):
        over = "yes" if item.over_predicted else "no"
        table.add_row(item.what, str(item.pool_mib), str(item.untouched_mib), over, f"{item.source}: {item.reason}")
    console.print(table)
    if wrong:
        console.print(Text("Not as it should be: " + "; ".join(wrong), style="bold red"))
        return
    known, without, after = outcome.known.pool_mib, outcome.without.pool_mib, outcome.after.pool_mib
    told = f"With history {known} MiB, without {without} MiB, after the misprediction {after} MiB (synthetic traces)."
    console.print(Text(told, style="bold green"))
    done = outcome.corrected
    console.print(
        f"The mispredicted VM was taken out of its pool memory: {done.state}, begun by the {done.trigger}, by "
        f"{done.method}; it claims {done.local_mib} MiB local, {done.pool_mib} MiB pool."
    )
