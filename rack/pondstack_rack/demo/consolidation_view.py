"""Shows the story of consolidation as a person likes to read it: each step with its times, the figures last."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pondstack_rack.demo.story import Story

WIDTH = 120
LABEL = (
    "CPU loads of hosts are SYNTHETIC (played); sleep is EMULATED (lowpower-s0 by freezing the host's agent and "
    "compute), nothing is saved by it. Guests run under TCG: times say nothing about real machines."
)


def show(story: Story) -> None:
    """Print everything to standard output; colours only where it is a terminal."""
    console = Console(width=None if Console().is_terminal else WIDTH, highlight=False)
    console.print(Text(LABEL, style="yellow"))
    table = Table(title="Idle hosts become memory", title_justify="left")
    for heading in ("at s", "took s", "step", "what was seen"):
        table.add_column(heading, justify="right" if heading.endswith(" s") else "left")
    for step in story.steps:
        seen = "\n".join([*(f"+ {line}" for line in step.told), *([f"- {step.wrong}"] if step.wrong else [])])
        table.add_row(
            f"{step.begun:.1f}", f"{step.seconds:.1f}", step.name, seen, style="bold red" if step.wrong else ""
        )
    console.print(table)
    figures = Table(title="Figures", title_justify="left", box=None, pad_edge=False, show_header=False)
    for item in story.figures:
        figures.add_row(item.name, item.value, f"({item.of})")
    console.print(figures)
    text = "all steps hold" if story.holds else "a step does not hold; see the row that begins with -"
    console.print(Text(f"{len(story.steps)} steps: {text}", style="bold green" if story.holds else "bold red"))
