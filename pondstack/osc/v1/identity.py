"""Projects as people name them: what a command takes, and the ID that the service takes.

As OpenStackClient's own commands do: a name or an ID, `--project-domain` where names are not unique, and what is given
counts as an ID where the user may not look for projects.
"""

import argparse
from typing import Any

from osc_lib import exceptions

from pondstack.osc.client import Document, MemoryClient


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add a project, and its domain, to a command about one."""
    parser.add_argument("project", metavar="<project>", help="Project (name or ID)")
    add_project_domain(parser)


def add_project_filter(parser: argparse.ArgumentParser) -> None:
    """Add a project, and its domain, to a list."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--project", metavar="<project>", help="Only of this project (name or ID; operator)")
    which.add_argument(
        "--project-id", metavar="<project-id>", help="Only of this project, which may be gone (operator)"
    )
    add_project_domain(parser)


def add_project_domain(parser: argparse.ArgumentParser) -> None:
    """Add a project's domain, as OpenStackClient words it."""
    parser.add_argument(
        "--project-domain",
        metavar="<project-domain>",
        help="Domain the project belongs to (name or ID). This can be used in case collisions between project names "
        "exist.",
    )


def project_id(manager: Any, parsed_args: argparse.Namespace) -> str:
    """Return the ID of the project of the command line; raises CommandError where there is none, or several."""
    # Of the shell that runs this plugin: whoever has no shell needs no python-openstackclient.
    from openstackclient.identity import common

    found: str = common.find_project(manager.identity, parsed_args.project, parsed_args.project_domain).id
    return found


def filtered_id(manager: Any, parsed_args: argparse.Namespace) -> str | None:
    """Return the ID of the project that a list is restricted to, None for all."""
    if parsed_args.project is None:
        given: str | None = parsed_args.project_id
        return given
    return project_id(manager, parsed_args)


def known_project(manager: Any, client: MemoryClient, parsed_args: argparse.Namespace) -> Document:
    """Return what is set for the project of the command line; it may be gone, if something is set for its ID."""
    try:
        found = project_id(manager, parsed_args)
    except exceptions.CommandError:
        left = client.get("projects", parsed_args.project)
        if left.get("updated_at") is None:
            raise
        return left
    return client.get("projects", found)
