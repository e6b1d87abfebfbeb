"""What a host that was taken over sends under its own name: values and arguments that its agent would not send.

Generated from the definitions: all wire values of pondstack.rpc.wire, all arguments of all verbs.
"""

import json
from collections.abc import Iterator
from typing import Any, get_type_hints

from oslo_messaging import ExpectedException

from pondstack.controller.gate import Gate
from pondstack.domain import conform
from pondstack.domain.errors import BadRequest, HostUnusable
from pondstack.rpc import wire
from tests.security.fuzzers.conforming import conforms
from tests.security.fuzzers.mutations import changed
from tests.security.fuzzers.shape_values import drawn
from tests.security.fuzzers.target import ACCEPTED, REFUSED, Target
from tests.security.verbs import verbs


def kinds(base: type = wire.Wire) -> Iterator[Any]:
    """Yield all classes of wire values."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


class WireValues(Target):
    """One value or one call, right at first, and then changed."""

    name = "wire values"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._kinds = sorted(set(kinds()), key=lambda kind: str(kind.__name__))
        # A verb is checked by what it declares; what its decorator wraps is the method.
        self._verbs = sorted(verbs().items(), key=lambda item: item[0])

    def attack(self) -> None:
        """Change a value, and a call."""
        self._value(self.dice.choice(self._kinds))
        (topic, verb), method = self.dice.choice(self._verbs)
        self._call(f"{topic} {verb}", method)

    def _value(self, kind: Any) -> None:
        honest = drawn(conform.fields_of(kind), self.dice)
        if kind is not wire.Wire and self.dice.random() < 0.1:
            self._honest(kind, honest)
        sent = changed(self.dice, honest)
        try:
            value = kind.from_wire(sent)
        except BadRequest:
            self.note(REFUSED)
            return
        self.note(ACCEPTED)
        if not conforms(value, kind):
            self.fault(f"{kind.__name__} takes {sent!r:.500}")
        json.dumps(value.to_wire(), allow_nan=False)

    def _honest(self, kind: Any, sent: Any) -> None:
        try:
            value = kind.from_wire(sent)
            again = kind.from_wire(json.loads(json.dumps(value.to_wire(), allow_nan=False)))
        except BadRequest as error:
            if "buffers are more" not in error.message:  # a rule that whoever draws does not know
                self.fault(f"{kind.__name__} refuses {sent!r:.500}: {error}")
            return
        if again != value:
            self.fault(f"{kind.__name__} is another one after it was sent: {sent!r:.500}")

    def _call(self, name: str, method: Any) -> None:
        """Call a verb of an endpoint of which nothing is there: what gets so far has passed."""
        shapes = conform.arguments_of(method)
        sent = changed(self.dice, {key: drawn(shape, self.dice) for key, shape in shapes.items()})
        if not isinstance(sent, dict):
            return
        try:
            method(Nothing(), {}, **sent)
        except Reached:
            self._passed(name, method, sent)
        except ExpectedException as wrapped:
            if not isinstance(wrapped.exc_info[1], BadRequest | HostUnusable):  # the latter of a verb that is gone
                raise
            self.note(REFUSED)
        except TypeError as error:  # an argument too many or too few, which oslo.messaging answers
            if "argument" not in str(error):
                raise
            self.note(REFUSED)
        else:
            self._passed(name, method, sent)

    def _passed(self, name: str, method: Any, sent: dict[str, Any]) -> None:
        self.note(ACCEPTED)
        hints = get_type_hints(method)
        odd = [key for key, value in sent.items() if key in hints and not conforms(value, hints[key])]
        if odd:
            self.fault(f"{name} takes {odd[0]}={sent[odd[0]]!r:.500}")


class Reached(Exception):
    """The method has begun."""


class Nothing:
    """An endpoint whose gate is open, and that has nothing behind it."""

    gate = Gate()

    def __getattr__(self, name: str) -> Any:
        raise Reached(name)
