"""Every verb of every endpoint on the bus, found where oslo.messaging would call it."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import oslo_messaging

import pondstack.controller
import pondstack_agent
from pondstack.rpc.targets import AGENT_TOPIC, CONTROLLER_TOPIC, NODE_TOPIC, WAKER_TOPIC

TOPICS = {"NodeEndpoint": NODE_TOPIC, "WakerEndpoint": WAKER_TOPIC}
"""Of endpoints that do not serve the topic of their package."""


def modules(package: ModuleType) -> list[ModuleType]:
    """Return all modules of a package, but tests."""
    names = [item.name for item in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [importlib.import_module(name) for name in names if ".tests" not in name]


def endpoints() -> dict[type, str]:
    """Return the classes that oslo.messaging calls, with the topic that they serve."""
    found: dict[type, str] = {}
    for package, topic in ((pondstack.controller, CONTROLLER_TOPIC), (pondstack_agent, AGENT_TOPIC)):
        for module in modules(package):
            for kind in vars(module).values():
                own = isinstance(kind, type) and kind.__module__ == module.__name__
                if own and isinstance(vars(kind).get("target"), oslo_messaging.Target):
                    found[kind] = TOPICS.get(kind.__name__, topic)
    return found


def verbs() -> dict[tuple[str, str], Any]:
    """Return what each verb of a topic is."""
    return {
        (topic, name): method
        for kind, topic in endpoints().items()
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
