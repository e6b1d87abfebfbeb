"""Extra-spec validators of the `pond:` namespace (entry points nova.api.extra_spec_validators), loaded by nova-api.

Single values are checked by Nova itself from compute microversion 2.86. What no single-key validator can see
(contradictions between keys), and what older microversions let in, is refused by two wrapped calls: when a flavor's
extra specs are saved, and when a server is created, resized or rebuilt with a flavor. All answers are 400 with the
legal form. A third wrapped call counts fixed pool shares and remote memory against the project's quota.
"""

import functools
from typing import Any

import nova.conf
from nova import exception
from nova.api.validation.extra_specs import base
from nova.limit import placement as limits
from nova.objects import flavor as flavor_object
from nova.virt import hardware

from pondstack.conf import scheduler as conf
from pondstack.domain.errors import BadSpec
from pondstack.domain.lending import DEFAULT_BUFFER_MIB
from pondstack.domain.sizing import LEGAL, NAMESPACE, Policy, parse_specs
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack_nova import flavors, pins, quota
from pondstack_nova.api import hooks

CONF = nova.conf.CONF
conf.register_opts(CONF)

_MARK = "_pondstack_wrapped"


class PondValidator(base.ExtraSpecValidator):
    """One key of the namespace, judged by pondstack.domain.sizing alone, so that every answer shows the legal form."""

    def validate(self, name: str, value: str) -> None:
        """Raise ValidationError (400) for an unknown key or a wrong value."""
        try:
            parse_specs(_companions(name, str(value)) | {name: str(value)})
        except BadSpec as error:
            raise exception.ValidationError(detail=error.message) from error


def register() -> list[base.ExtraSpecValidator]:
    """Return the validators of the namespace; wrap the two calls that see whole flavors, and the one that counts."""
    hooks.check()
    _wrap(flavor_object.Flavor, "save_extra_specs", _save_extra_specs)
    _wrap(hardware, "numa_get_constraints", _numa_get_constraints)
    _wrap(limits, quota.counting(), quota.count)
    known = [
        PondValidator(name=f"{NAMESPACE}{key}", description=legal, value={"type": str, "description": legal})
        for key, legal in LEGAL.items()
    ]
    anything = {"name": "key", "pattern": ".*"}
    unknown = PondValidator(
        name=f"{NAMESPACE}{{key}}",
        description="Any other key of the namespace is refused.",
        value={"type": str, "description": "none"},
        parameters=[anything],
    )
    return [*known, unknown]


def _companions(name: str, value: str) -> dict[str, str]:
    """Return the specs that make a single key whole, so that only the key itself can be wrong."""
    if name == f"{NAMESPACE}policy":
        return {f"{NAMESPACE}pool_mb": str(DEFAULT_SLICE_MIB)} if value == Policy.FIXED else {}
    if name == f"{NAMESPACE}disk_mb":
        return {f"{NAMESPACE}remote_mb": str(DEFAULT_BUFFER_MIB)}
    return {f"{NAMESPACE}policy": Policy.FIXED if name == f"{NAMESPACE}pool_mb" else Policy.AUTO}


def _wrap(owner: Any, name: str, wrapper: Any) -> None:
    original = getattr(owner, name)
    if getattr(original, _MARK, False):
        return

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(wrapped, _MARK, True)
    setattr(owner, name, wrapped)


def _save_extra_specs(original: Any, flavor: Any, to_add: Any = None, to_delete: Any = None) -> Any:
    # Taking keys away is always allowed: it is the way out of a contradiction.
    before = flavor._orig_extra_specs
    if any(before.get(key) != value for key, value in (to_add or {}).items()):
        try:
            memory_mib = flavor.memory_mb if "memory_mb" in flavor else None
            specs = flavors.check(to_add, memory_mib, *_most())
            pins.check(specs, pins.of_flavor(to_add))
        except BadSpec as error:
            raise exception.ValidationError(detail=error.message) from error
    return original(flavor, to_add, to_delete)


def _most() -> tuple[int, int]:
    """Return how much of a guest may be remote, and how large its swap disk, in percent of its memory."""
    return CONF.pondstack.max_remote_percent, CONF.pondstack.max_swap_percent


def _numa_get_constraints(original: Any, flavor: Any, image_meta: Any) -> Any:
    topology = original(flavor, image_meta)
    try:
        extra_specs = flavor.extra_specs if "extra_specs" in flavor else {}
        specs = flavors.check(extra_specs, flavor.memory_mb, *_most())
        flavors.check_numa(specs, topology)
        pins.check(specs, pins.of_flavor(extra_specs) or pins.of_image(image_meta))
    except BadSpec as error:
        # Of the exceptions that create, resize and rebuild turn into a 400 with their own text.
        raise exception.InvalidRequest(error.message) from error
    return topology
