"""The OpenStackClient plugin (entry point openstack.cli.extension): how to make a client, which options there are."""

import argparse
from typing import Any

from osc_lib import utils

from pondstack.osc.client import MemoryClient

API_NAME = "memory"
API_VERSION_OPTION = "os_memory_api_version"
DEFAULT_API_VERSION = "1.24"
API_VERSIONS = (
    "1",
    "1.0",
    "1.1",
    "1.2",
    "1.3",
    "1.4",
    "1.5",
    "1.6",
    "1.7",
    "1.8",
    "1.9",
    "1.10",
    "1.11",
    "1.12",
    "1.13",
    "1.14",
    "1.15",
    "1.16",
    "1.17",
    "1.18",
    "1.19",
    "1.20",
    "1.21",
    "1.22",
    "1.23",
    "1.24",
)


def make_client(instance: Any) -> MemoryClient:
    """Return the client of a client manager."""
    version = instance._api_version[API_NAME]
    return MemoryClient(
        instance.session,
        region_name=instance.region_name,
        interface=instance.interface,
        version=DEFAULT_API_VERSION if version == "1" else version,
    )


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the plugin's global option."""
    parser.add_argument(
        "--os-memory-api-version",
        metavar="<memory-api-version>",
        default=utils.env("OS_MEMORY_API_VERSION"),
        help=f"Memory API version, default={DEFAULT_API_VERSION} (Env: OS_MEMORY_API_VERSION)",
    )
    return parser
