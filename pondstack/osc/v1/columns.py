"""How values look to a person; -f json and the like get them as the API gave them."""

from collections.abc import Iterable
from typing import Any, TypeVar

from cliff.columns import FormattableColumn

from pondstack.domain.printable import escaped_within

T = TypeVar("T")


def span(start: int, count: int) -> str:
    """Return an extent as a person reads it: `0-1`, `7`."""
    return str(start) if count == 1 else f"{start}-{start + count - 1}"


def operation_text(item: dict[str, Any]) -> str:
    """Return how far a lender is with what it was asked for: `lend 128 of 512 MiB, pending`."""
    reason = f": {item['reason']}" if item["reason"] else ""
    return f"{item['verb']} {item['done_mib']} of {item['mib']} MiB, {item['state']}{reason}"


class Column(FormattableColumn[T]):
    """A value whose texts a terminal is shown escaped: names and reasons are others'."""

    def __init__(self, value: T) -> None:
        super().__init__(escaped_within(value))
        self._given = value

    def machine_readable(self) -> Any:
        """Return the value for -f json and the like."""
        return self._given


class Text(Column[str]):
    """A text."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return self._value


class Extents(Column[Any]):
    """A list of {start, count} as `0-1, 7`; None, what the caller may not see, as `-`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        if self._value is None:
            return "-"
        return ", ".join(span(extent["start"], extent["count"]) for extent in self._value)


class Maybe(Column[Any]):
    """A value that may be absent: `-`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return "-" if self._value in (None, "") else str(self._value)


class Rounded(Column[float | None]):
    """A number with two decimals; `-` for none."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return "-" if self._value is None else f"{self._value:.2f}"


class Span(Column[float | None]):
    """Seconds as a person reads them: `45 s`, `12 min`, `3.5 h`, `2.1 d`; `-` for what is not known."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        if self._value is None:
            return "-"
        for limit, unit, name in ((120, 1, ".0f} s"), (7200, 60, ".0f} min"), (2 * 86400, 3600, ".1f} h")):
            if self._value < limit:
                return f"{{:{name}".format(self._value / unit)
        return f"{self._value / 86400:.1f} d"


class YesNo(Column[bool | None]):
    """A yes, a no, or `-` for what is not known."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return "-" if self._value is None else "yes" if self._value else "no"


class FreeBuffer(Column[dict[str, Any] | None]):
    """A free buffer as `2 slices (4 needed by 31 starts in the 12.5 s in which slices come back), 3 misses`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        if not self._value:
            return "-"
        value = self._value
        why = "no slice came back lately"
        if value["give_back_seconds"] is not None:
            within = f"in the {value['give_back_seconds']} s in which slices come back"
            why = f"{value['needed_slices']} needed by {value['starts']} starts {within}"
        return f"{value['slices']} slices ({why}), {value['misses']} misses"


class Names(Column[Iterable[str]]):
    """A list of names: `host-1, host-2`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return ", ".join(self._value) or "-"


class MaybeNames(Column[Iterable[str] | None]):
    """A list of names, or None, what the caller may not see: `-`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return ", ".join(self._value or ()) or "-"


class LentRuns(Column[list[dict[str, Any]] | None]):
    """The buffers of a loan, a line each: `host-1: 0-1 online, leaving`; None, what the caller may not see, as `-`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return "\n".join(self._line(run) for run in self._value or ()) or "-"

    @staticmethod
    def _line(run: dict[str, Any]) -> str:
        key = "key disclosed" if run["disclosed"] else "key in escrow" if run["escrowed"] else ""
        words = [run["state"], key, "leaving" if run["leaving"] else ""]
        return f"{run['lender']}: {span(run['start'], run['count'])} " + ", ".join(word for word in words if word)


class Borrowing(Column[dict[str, Any] | None]):
    """What a host borrows: `1024 MiB guaranteed, 512 MiB best effort`; `-` for nothing."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        if not self._value or not any(self._value.values()):
            return "-"
        return f"{self._value['guaranteed_mib']} MiB guaranteed, {self._value['best_effort_mib']} MiB best effort"


class Counts(Column[dict[str, int]]):
    """Counts by name, without those that are zero: `free 12, online 4`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return ", ".join(f"{name} {count}" for name, count in self._value.items() if count) or "-"


class Operations(Column[list[dict[str, Any]]]):
    """What a lender was asked for, a line each: `lend 512 of 1024 MiB, done: why it is less`; `-` for nothing."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return "\n".join(operation_text(item) for item in self._value) or "-"


class Lending(Column[dict[str, Any] | None]):
    """What a host lends, and what it is to lend: `512 MiB, 256 of them to be borrowed`; `-` for nothing."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        if not self._value:
            return "-"
        lent, admitted, operation = (self._value[name] for name in ("lent_mib", "admitted_mib", "operation"))
        lines = [f"{lent} MiB, {admitted} of them to be borrowed"] if lent else []
        return "\n".join([*lines, *([operation_text(operation)] if operation else [])]) or "-"


class HostSlices(Column[list[dict[str, Any]] | None]):
    """What a host holds for itself, a line each: `tier: 1 of 2 online, pool 7c1f...: what it waits for`."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        lines = (
            f"{item['purpose']}: {item['online']} of {item['wanted']} online, pool {item['pool_uuid']}"
            + (f": {item['reason']}" if item["reason"] else "")
            for item in self._value or ()
        )
        return "\n".join(lines) or "-"


class Tiering(Column[dict[str, Any] | None]):
    """Settings of tiering, a line each, then the nodes of each memory tier and what is wrong; `-` for none."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        if not self._value:
            return "-"
        tiers = (f"tier {tier}: node {', '.join(map(str, nodes))}" for tier, nodes in self._value["tiers"].items())
        settings = (f"{name} {value}" for name, value in self._value["settings"].items())
        return "\n".join([*settings, *tiers, *(f"trouble: {text}" for text in self._value["trouble"])])


def sleep_text(value: dict[str, Any]) -> str:
    """Return how far a host is with its sleep: `asleep by lowpower-s0, lends 4096 MiB`; an emulation says so."""
    emulated = " (emulated: nothing is saved)" if value["emulated"] else ""
    reason = f": {value['reason']}" if value["reason"] else ""
    return f"{value['state']} by {value['driver']}{emulated}, lends {value['lent_mib']} MiB{reason}"


class Sleep(Column[dict[str, Any] | None]):
    """A host's newest sleep, as sleep_text has it; `-` where it never slept."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return sleep_text(self._value) if self._value else "-"


class Power(Column[dict[str, Any] | None]):
    """Whether a host's memory is reachable, and its power; `-` of a service that does not tell.

    `memory reachable, by estimate (profile hp) 135 W idle, 32 W asleep by sz`
    """

    def human_readable(self) -> str:
        """Return the text for a table."""
        if not self._value:
            return "-"
        reachable, found = "" if self._value["memory_reachable"] else "not ", self._value["estimate"]
        asleep = "unknown" if found["asleep_watts"] is None else f"{found['asleep_watts']:.0f} W"
        return (
            f"memory {reachable}reachable, by estimate (profile {found['profile']}) {found['idle_watts']:.0f} W idle, "
            f"{asleep} asleep by {self._value['driver']}"
        )


class SleepWord(Column[dict[str, Any] | None]):
    """The state of a host's sleep that goes on; `-` where it is awake."""

    def human_readable(self) -> str:
        """Return the text for a table."""
        return self._value["state"] if self._value and self._value["ended_at"] is None else "-"
