"""What the QoS monitor decides of a VM, by name (Pond 4.2 and 4.4). Pure."""

from enum import StrEnum


class QosMode(StrEnum):
    """What the monitor does: nothing, decide and keep the decisions, or mitigate too."""

    OFF = "off"
    DRY_RUN = "dry_run"
    ON = "on"


class Unknown(StrEnum):
    """What becomes of an over-predicted VM whose sensitivity nobody knows."""

    MITIGATE = "mitigate"
    LEAVE = "leave"


class Verdict(StrEnum):
    """What a VM with pool memory is."""

    FITS = "fits"
    """It has touched no more of its pool memory than the limit."""
    UNOBSERVED = "unobserved"
    """Nobody knows what it touched: no telemetry, or none that is young enough."""
    INSENSITIVE = "insensitive"
    """It touched more, and no model expects it to be slowed down beyond what it tolerates."""
    SENSITIVE = "sensitive"
    """It touched more, and a model expects it to be slowed down."""
    UNKNOWN = "unknown"
    """It touched more, and no model knows its counters."""


TOUCHED = (Verdict.INSENSITIVE, Verdict.SENSITIVE, Verdict.UNKNOWN)
"""Verdicts of over-predicted VMs: these decisions are kept, and are labelled examples."""


class QosAction(StrEnum):
    """What was done about it."""

    LEAVE = "leave"
    """Nothing: it is insensitive, its flavor fixes its pool memory, or policy leaves unknown ones alone."""
    WOULD = "would_mitigate"
    """Nothing, since the monitor runs dry: in mode `on` it would be mitigated now."""
    MITIGATE = "mitigate"
    """Its mitigation was begun."""
    WAIT = "wait"
    """It is to be mitigated, and waits: for quiet hours to end, or a rate limit."""
    ONCE = "once"
    """It was mitigated before, and is mitigated again by an operator's word only."""
    REFUSED = "refused"
    """Its mitigation could not begin; it is tried again."""
