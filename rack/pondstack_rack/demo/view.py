"""Shows the demo's facts as a person likes to read them: tables on a terminal, plain text elsewhere."""

from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pondstack.domain.units import RESOURCE_CLASS
from pondstack_rack.demo.demo import Facts
from pondstack_rack.layout import Layout
from pondstack_rack.services import keystone

WIDTH = 100


def show(facts: Facts, wrong: list[str], layout: Layout) -> None:
    """Print everything to standard output; colours only where it is a terminal."""
    console = Console(width=None if Console().is_terminal else WIDTH, highlight=False)
    for title, content in (
        ("1  The split", _split(facts)),
        ("2  Where Nova put it, and why", _placed(facts)),
        ("3  What the guest sees (from its console)", _guest(facts)),
        ("4  The ledger (which slices) and Placement (the claim)", _books(facts)),
    ):
        console.print(Panel(content, title=title, title_align="left", border_style="dim"))
    if wrong:
        console.print(Text("They contradict each other: " + "; ".join(wrong), style="bold red"))
    else:
        console.print(Text("Nova, guest, ledger and Placement agree.", style="bold green"))
    console.print(_next(facts, layout), soft_wrap=True)


def _split(facts: Facts) -> RenderableType:
    split, ledger = facts.split, facts.ledger
    specs = ", ".join(f"{key}={value}" for key, value in sorted(facts.specs.items()))
    local, pool = ledger["local_mib"], ledger["pool_mib"]
    cells = 40
    far = round(cells * pool / max(local + pool, 1))
    bar = Text("█" * (cells - far), style="cyan") + Text("░" * far, style="yellow")
    lines = [
        Text(f"flavor {facts.flavor}: {local + pool} MiB ({specs})"),
        Text(f"{local} MiB local ") + bar + Text(f" {pool} MiB pool"),
        Text(f"decided by: {split.get('source', 'unknown')}; {split.get('reason', 'the ledger remembers no split')}"),
    ]
    return Group(*lines)


def _placed(facts: Facts) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    for heading in ("host", "hypervisor", "reaches the pool", "agent", "answer"):
        table.add_column(heading)
    for host in facts.hosts:
        agent = host["agent"]
        reaches = "yes" if facts.ledger["pool_uuid"] in agent.get("pools", []) else "no"
        style = "bold green" if host["name"] == facts.host else ""
        table.add_row(
            host["name"], host["type"], reaches, "up" if agent.get("up") else "down", _why(host, facts), style=style
        )
    took = f" ACTIVE in {facts.boot_seconds:.1f} s." if facts.boot_seconds is not None else ""
    before, after = _free(facts.pool_before), _free(facts.pool_after)
    pool = f"free slices of {facts.pool_after['name']}: {before} before, {after} after"
    return Group(
        table,
        Text(f"Placement offered the hosts with room; PondFilter kept those that reach free slices.{took}"),
        Text(pool),
    )


def _why(host: dict[str, Any], facts: Facts) -> str:
    if host["name"] == facts.host:
        return "chosen: free local memory, comfortable pool"
    if host["type"] == "fake":
        return "no: the image asks for QEMU"
    agent = host["agent"]
    if not agent.get("up") or not agent.get("enabled"):
        return "no: its agent is down or it is disabled"
    return "would have done, too"


def _guest(facts: Facts) -> RenderableType:
    if not facts.nodes:
        return Text("the console begins after a migration: the nodes were told on the former host")
    table = Table(box=None, pad_edge=False)
    for heading in ("node", "CPUs", "MiB", "distances"):
        table.add_column(heading)
    for node in facts.nodes:
        name = f"node{node['node']}" + ("  (zNUMA)" if not node["cpulist"] else "")
        mib = f"{node['memtotal_kib'] / 1024:.0f}"
        table.add_row(name, node["cpulist"] or "none", mib, " ".join(str(value) for value in node["distance"]))
    beat = facts.beat
    held = f"it rewrites and checks {beat['pool_buffer_kib']} KiB on node{beat['pool_node']} all the time"
    return Group(table, Text(f"{held}: beat {beat['count']}, {beat['errors']} errors"))


def _books(facts: Facts) -> RenderableType:
    ledger = facts.ledger
    slices = ", ".join(
        str(i) for extent in ledger["extents"] for i in range(extent["start"], extent["start"] + extent["count"])
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("ledger", f"allocation {ledger['uuid']}")
    table.add_row(
        "", f"{ledger['pool_name']} slice {slices}, {ledger['state']}, on {ledger['host']}, {ledger['pool_mib']} MiB"
    )
    for provider, resources in sorted(facts.placement.items()):
        what = ", ".join(f"{name} {amount}" for name, amount in sorted(resources.items()))
        table.add_row("Placement", f"{provider}: {what}", style="yellow" if RESOURCE_CLASS in resources else "")
    return table


def _next(facts: Facts, layout: Layout) -> Text:
    other = next((name for name in layout.libvirt_hosts if name != facts.host), None)
    migrate = [f"  openstack server migrate --live-migration --host {other} --wait {facts.server}"] if other else []
    lines = [
        "",
        "The rack is left running. Type next:",
        f"  source {layout.root}/openrc    # the operator; openrc-{keystone.TENANT} is the tenant",
        f"  openstack memory allocation show {facts.server}",
        "  openstack memory slice list pool0",
        f"  openstack console log show {facts.server} | tail -n 3",
        *migrate,
        f"  openstack server delete {facts.server}",
        "  make failover               # kill the leading controller, and watch the other one take over",
        "  make predictions            # VMs placed by what their project left untouched (synthetic traces)",
        "  make demo-consolidation     # an idle host is emptied, lends, sleeps, serves, and is woken",
        "  make replay REQUESTS=500    # real requests against the fake computes",
        "  make rack-down              # stop and remove all of it",
        f"Logs of all services: {layout.log}",
    ]
    return Text("\n".join(lines))


def _free(pool: dict[str, Any]) -> int:
    return int(pool["slices"].get("free", 0))
