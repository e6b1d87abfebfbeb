"""A lender in a process of its own, which tests freeze and kill. Run as `lender_process.py DRIVER FOLDER [HOST]`.

One JSON command per line on standard input, one JSON answer per line on standard output; ends with its input.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from pondstack_rdma.base import Lender, Transport
from pondstack_rdma.model import Key, Region
from pondstack_rdma.shm import ShmTransport
from pondstack_rdma.tcp import TcpTransport
from pondstack_rdma.verbs import VerbsTransport


def main(driver: str, folder: str, host: str = "127.0.0.1") -> None:
    """Serve until the input ends; `host`: where it listens over tcp."""
    made: dict[str, Callable[[], Transport]] = {
        "shm": lambda: ShmTransport(folder),
        "tcp": lambda: TcpTransport(host),
        "verbs": VerbsTransport,
    }
    with made[driver]().lend("process") as lender:
        regions: list[Region] = []
        keys: list[Key] = []
        for line in sys.stdin:
            print(json.dumps(answer(lender, regions, keys, **json.loads(line))), flush=True)


def answer(lender: Lender, regions: list[Region], keys: list[Key], verb: str, **arguments: Any) -> Any:
    """Carry out one command; regions and keys are numbered from 0 in the order in which they were made."""
    match verb:
        case "admit":
            return lender.admit(arguments["borrower"]).to_dict()
        case "register":
            regions.append(lender.register(arguments["size_bytes"]))
            return len(regions) - 1
        case "export":
            keys.append(lender.export(regions[arguments["region"]], arguments["borrower"]))
            return keys[-1].to_dict()
        case "locate":
            return next(lender.locate(key) for key in keys if key.number == arguments["number"]).to_dict()
        case "revoke":
            return lender.revoke(keys[arguments["number"]])
        case "load":
            return lender.load(regions[arguments["region"]], arguments["offset"], arguments["size"]).hex()
    raise ValueError(verb)


if __name__ == "__main__":
    main(*sys.argv[1:])
