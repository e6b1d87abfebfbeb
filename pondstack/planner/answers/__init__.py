"""What the planner answers to a trace: `answer`, and the dataclasses that it returns."""

from pondstack.planner.answers.composer import answer
from pondstack.planner.figures import (
    Answers,
    Counterfactual,
    Dram,
    Energy,
    Estimate,
    Failures,
    Money,
    Offlining,
    SizeClass,
    Slowdown,
    Source,
    Stranding,
    Tiering,
)

__all__ = [
    "Answers",
    "Counterfactual",
    "Dram",
    "Energy",
    "Estimate",
    "Failures",
    "Money",
    "Offlining",
    "SizeClass",
    "Slowdown",
    "Source",
    "Stranding",
    "Tiering",
    "answer",
]
