"""What `openstack memory host set` says of slices that a host holds for itself, and of tiering."""

import argparse

from osc_lib.cli import parseractions

from pondstack.osc.client import Document, MemoryClient

PURPOSES = ("tier", "base")
_TIERING = {"on": True, "off": False, "default": None}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --tier-slices, --base-slices, --pool and --tiering."""
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
        "--tiering",
        choices=tuple(_TIERING),
        help="Have its kernel demote cold pages to tier slices and promote hot ones, or not; default: as its agent is "
        "configured",
    )
    parser.add_argument(
        "--pool", metavar="<pool>", help="UUID or name of their pool (default: the only one that the host reaches)"
    )


def changes(client: MemoryClient, parsed_args: argparse.Namespace) -> list[tuple[str, Document]]:
    """Return what of a host is to be changed, and how, in the order in which it goes; without the generation."""
    wanted = {purpose: getattr(parsed_args, f"{purpose}_slices") for purpose in PURPOSES}
    place = {"pool_uuid": client.get("pools", parsed_args.pool)["uuid"]} if parsed_args.pool else {}
    slices: list[tuple[str, Document]] = [
        ("slices", {"purpose": purpose, "count": count, **place})
        for purpose, count in wanted.items()
        if count is not None
    ]
    if parsed_args.tiering is None:
        return slices
    return [*slices, ("tiering", {"on": _TIERING[parsed_args.tiering]})]
