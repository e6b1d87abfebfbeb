"""The internal hooks of nova-api that the extra-spec validators rely on, checked by behaviour on throw-away objects."""

from types import SimpleNamespace
from typing import Any

from nova import exception, objects
from nova.api.openstack import wsgi
from nova.api.validation.extra_specs import base
from nova.compute import api as compute_api
from nova.limit import placement as limits
from nova.limit import utils as limit_utils
from nova.objects import flavor as flavor_object
from nova.virt import hardware

from pondstack_nova import quota, self_check
from pondstack_nova.self_check import Check, expect, swapped


class _Reached(Exception):
    """Our probe was called."""


def _reached(*_args: Any, **_kwargs: Any) -> Any:
    raise _Reached


def validators_registry() -> None:
    """validate(name, value) finds validators in VALIDATORS by name, or by name_regex for embedded parameters."""
    # Here, not above: its import loads our validators, which load this module.
    from nova.api.validation.extra_specs import validators

    class Probe(base.ExtraSpecValidator):
        def validate(self, name: str, value: str) -> None:
            raise _Reached(name, value)

    exact = Probe(name="pondcheck:a", description="", value={"type": str})
    pattern = Probe(
        name="pondcheck:{key}", description="", value={"type": str}, parameters=[{"name": "key", "pattern": ".+"}]
    )
    for probe, name in ((exact, "pondcheck:a"), (pattern, "pondcheck:b")):
        validators.VALIDATORS[probe.name] = probe
        try:
            validators.validate(name, "1")
        except _Reached as reached:
            expect(reached.args == (name, "1"), f"it was called with {reached.args}")
        else:
            raise RuntimeError(f"no validator was asked for {name}")
        finally:
            del validators.VALIDATORS[probe.name]


def flavor_save() -> None:
    """Flavor.save hands all specs of the flavor to save_extra_specs, _orig_extra_specs still has the old ones."""
    flavor = objects.Flavor(extra_specs={"a": "1"}, memory_mb=1)
    flavor.obj_reset_changes()
    flavor.extra_specs = {"a": "1", "b": "2"}
    seen: list[Any] = []

    def save(self: Any, to_add: Any = None, to_delete: Any = None) -> None:
        seen.append((dict(self._orig_extra_specs), to_add, set(to_delete or ())))

    with (
        swapped(flavor_object.Flavor, "save_extra_specs", save),
        swapped(flavor_object.Flavor, "_send_notification", lambda *_: None),
    ):
        flavor.save()
    expect(seen == [({"a": "1"}, {"a": "1", "b": "2"}, set())], f"save_extra_specs saw {seen}")


def numa_constraints() -> None:
    """The compute API asks nova.virt.hardware.numa_get_constraints(flavor, image) when a flavor is about to be used."""
    flavor = objects.Flavor(vcpus=1, memory_mb=1024, extra_specs={})
    with swapped(hardware, "numa_get_constraints", _reached):
        try:
            compute_api.API._validate_flavor_image_numa_pci({}, flavor)
        except _Reached:
            return
    raise RuntimeError("the compute API does not call it")


def validation_error_is_400() -> None:
    """A ValidationError leaves any API method as it is, and is 400."""

    @wsgi.expected_errors(404)
    def method(_self: Any, _req: Any) -> None:
        raise exception.ValidationError(detail="pondstack self-check")

    version = SimpleNamespace(matches=lambda *_: True)
    try:
        method(None, SimpleNamespace(api_version_request=version))
    except exception.ValidationError as error:
        expect(error.code == 400, f"its code is {error.code}")
        expect(error.format_message() == "pondstack self-check", f"its text is {error.format_message()}")
        return
    raise RuntimeError("it was swallowed")


def invalid_request_is_shown() -> None:
    """Create, resize and rebuild turn InvalidRequest into a 400 with its own text."""
    # Here, not above: our validators load while Nova's API is being imported.
    from nova.api.openstack.compute import servers

    expect(exception.InvalidRequest in servers.INVALID_FLAVOR_IMAGE_EXCEPTIONS, "InvalidRequest is not among them")


def quota_counts() -> None:
    """Quota is asked for what one function counts, by class and `servers`, of a request (a flavor before Nova 34)."""
    flavor = objects.Flavor(vcpus=1, memory_mb=1024, root_gb=0, ephemeral_gb=0, swap=0, extra_specs={})
    by_flavor = quota.counting() == "_get_deltas_by_flavor"
    asked = (flavor, False) if by_flavor else (objects.RequestSpec(flavor=flavor, is_bfv=False),)
    counted = getattr(limits, quota.counting())(*asked, 2)
    expect((counted["servers"], counted[quota.LOCAL]) == (2, 2048), f"it counted {counted}")
    enforce = limits.enforce_num_instances_and_flavor if by_flavor else limits.enforce_num_instances_and_resources
    with swapped(limits, quota.counting(), _reached), swapped(limit_utils, "use_unified_limits", lambda: True):
        try:
            enforce(None, "project", *asked, 1, 1)
        except _Reached:
            return
    raise RuntimeError("quota is asked for something else")


CHECKS: list[Check] = [
    ("nova.api.validation.extra_specs.validators.validate", validators_registry),
    ("nova.objects.flavor.Flavor.save_extra_specs", flavor_save),
    ("nova.virt.hardware.numa_get_constraints", numa_constraints),
    ("nova.api.openstack.wsgi.expected_errors", validation_error_is_400),
    ("nova.api.openstack.compute.servers.INVALID_FLAVOR_IMAGE_EXCEPTIONS", invalid_request_is_shown),
    ("nova.limit.placement, what a request counts", quota_counts),
]


def check() -> None:
    """Check what the extra-spec validators rely on; raises HookChanged."""
    self_check.run(CHECKS)
