"""What `openstack memory host set` says of slices that a host holds for itself."""

import argparse

from osc_lib.cli import parseractions

from pondstack.osc.client import Document, MemoryClient

PURPOSES = ("tier", "base")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --tier-slices, --base-slices and --pool."""
    for purpose, why in zip(
        PURPOSES,
        (
            "Hold so many slices for tiering by the host's kernel; guests get none of that pool there then",
            "Hold so many slices that keep the pool's memory node online while guests come and go",
        ),
        strict=True,
    ):
        parser.add_argument(
            f"--{purpose}-slices", metavar="<count>", type=int, action=parseractions.NonNegativeAction, help=why
        )
    parser.add_argument(
        "--pool", metavar="<pool>", help="UUID or name of their pool (default: the only one that the host reaches)"
    )


def changes(client: MemoryClient, parsed_args: argparse.Namespace) -> list[Document]:
    """Return a body for each number that was given, without the generation."""
    wanted = {purpose: getattr(parsed_args, f"{purpose}_slices") for purpose in PURPOSES}
    place = {"pool_uuid": client.get("pools", parsed_args.pool)["uuid"]} if parsed_args.pool else {}
    return [{"purpose": purpose, "count": count, **place} for purpose, count in wanted.items() if count is not None]
