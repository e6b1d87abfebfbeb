"""An honest record for each folder of the agent's state, and the folder that holds them all.

What a real agent writes is in it as far as one attach and one detach write it; the others are as their classes do.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from pondstack_agent.records import Records

_NAMES = UUID("0f2c1a50-5f0e-4a5e-8d57-0a5d2b3c4e19")


def name(text: str) -> str:
    """Return a UUID that is always the same."""
    return str(uuid5(_NAMES, text))


HOST, LENDER = "host1", "host2"
BOOT = "7b0a5a4e-1b8e-4f0a-9a49-3f8f5f1d7c11"
OPERATION, CONSUMER, ALLOCATION, POOL = name("operation"), name("consumer"), name("allocation"), name("pool")
GRANT: dict[str, Any] = {
    "allocation_uuid": ALLOCATION,
    "consumer_uuid": CONSUMER,
    "host": HOST,
    "pool_uuid": POOL,
    "pool_name": "pool0",
    "device": {"driver": "dcd", "path": "/nowhere/device", "memory": "file"},
    "slice_mib": 1,
    "extents": [{"start": 4, "count": 2}],
    "epoch": 1,
    "purpose": "guest",
}
KEY = {"number": 7, "borrower": HOST, "size_bytes": 2**20, "token": "00ff" * 8}
TICKET = {"driver": "tcp", "address": "127.0.0.1:1", "borrower": HOST, "secret": "ab" * 16}
BACKING = {"kind": "file", "size_mib": 2, "distance": 20, "path": "/nowhere/device/memory", "offset_bytes": 4 * 2**20}
BORROW = {"operation_id": name("borrow"), "mib": 1, "allocation_uuid": ALLOCATION, "state": "open"}

SAMPLES: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "attachments": {
        ALLOCATION: {**GRANT, "device_path": "/nowhere/device", "backings": [{**BACKING, "host_node": None}]}
    },
    "borrowing": {
        f"{LENDER}@{name('incarnation')}": {
            "lender": LENDER,
            "incarnation": name("incarnation"),
            "ticket": TICKET,
            "at": 1000.0,
            "buffers": {"3": {"allocation_uuid": ALLOCATION, "key": KEY, "leaving": False}},
            "released": {"2": 6},
            "telling": {name("telling"): {"allocation_uuid": ALLOCATION, "indexes": [2]}},
        }
    },
    "cxl": {ALLOCATION: {**GRANT, "boot": BOOT}},
    "cxl-dirty": {ALLOCATION: {"indexes": [4, 5]}},
    "cxl-states": {ALLOCATION: {"state": "online", "reason": "", "vacated": [4711, 123456, 1]}},
    "damon": {"watch": {"pid": 4711, "boot": BOOT}},
    "lending": {
        OPERATION: {
            "operation_id": OPERATION,
            "verb": "lend",
            "mib": 64,
            "at": 1000.0,
            "kind": "active",
            "incarnation": name("own"),
            "from_mib": 0,
            "ends_at": 0.0,
            "state": "done",
            "reason": "",
            "ended_mib": 64,
        }
    },
    "marks": {"epoch": {"seen": 1}, "sequence": {"reserved": 1000}, "lent": {"incarnation": name("own")}},
    "mitigations": {
        ALLOCATION: {
            "operation_id": OPERATION,
            "consumer_uuid": CONSUMER,
            "allocation_uuid": ALLOCATION,
            "pool_node": 1,
            "at": 1000.0,
            "pages": 512,
            "left": 0,
            "state": "mitigated",
            "seconds": 1.5,
            "reason": "",
            "hold": False,
        }
    },
    "operations": {
        OPERATION: {
            "operation_id": OPERATION,
            "kind": "attach",
            "consumer_uuid": CONSUMER,
            "at": 1000.0,
            "status": "done",
            "request": {
                "pool_uuid": POOL,
                "pool_mib": 2,
                "guest_mib": 16,
                "project_id": "",
                "user_id": "",
                "shape": None,
            },
            "grant": GRANT,
            "allocations": [],
            "error": None,
            "online_at": 3,
        }
    },
    "releases": {ALLOCATION: {"state": "released", "at": 1000.0, "not_zero": [4]}},
    "remote": {
        CONSUMER: {
            "consumer_uuid": CONSUMER,
            "operation_id": OPERATION,
            "guaranteed": True,
            "mib": 1,
            "mirror": "/nowhere/mirror",
            "at": 1000.0,
            "project_id": "",
            "user_id": "",
            "state": "active",
            "asked": 1,
            "borrows": {BORROW["operation_id"]: BORROW},
        }
    },
    "revocations": {"revoked": {"agent/host3": 1000.5}},
    "tiering": {
        "demotion": {
            "path": "sys/kernel/mm/numa/demotion_enabled",
            "former": "false",
            "written": ["true"],
            "boot": BOOT,
        }
    },
    "tiering-order": {"order": {"on": True}},
}


def write(folder: Path, without: str = "") -> None:
    """Write all samples but those of one folder, as an agent writes them."""
    for kind, records in SAMPLES.items():
        if kind != without:
            opened = Records(folder / kind)
            for key, record in records.items():
                opened.put(key, json.loads(json.dumps(record)))


def copied(source: Path, target: Path) -> Path:
    """Return a copy of a folder, in place of what is there."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))
