"""Each call of the agent reaches the endpoint that was written for its version."""

import inspect
from typing import Any

from oslo_messaging import _utils

from agent.tests.conftest import Rig


def verbs(endpoint: Any) -> list[str]:
    return [name for name, _ in inspect.getmembers(type(endpoint), inspect.isfunction) if not name.startswith("_")]


def test_each_verb_is_called_by_its_version(rig: Rig) -> None:
    """oslo.messaging calls the first endpoint that has the verb and whose version covers that of the call."""
    endpoints = rig.agent.endpoints
    for own in endpoints:
        for verb in verbs(own):
            called = next(
                other
                for other in endpoints
                if hasattr(other, verb) and _utils.version_is_compatible(other.target.version, own.target.version)
            )
            assert called is own, f"{verb} {own.target.version} reaches {type(called).__name__} {called.target.version}"
