"""A small honest trace in every format that the planner reads, SYNTHETIC: written here, in that form."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import polars

HOURS = range(12)
BITBRAINS = ";\t".join(f"column {number}" for number in range(11))
NOVA_TABLE = "uuid, project_id, vcpus, memory_mb, launched_at, terminated_at, deleted_at, deleted"


def _csv() -> str:
    rows = [f"{60 * n},{60 * n + 600},2,{1024 * (n + 1)},12.5,40,acme,id-{n}" for n in HOURS]
    return "\n".join(["start_seconds,end_seconds,vcpus,memory_mib,load_percent,untouched_percent,group,id", *rows, ""])


def _vmtable() -> str:
    return "".join(f"vm{n},sub{n % 3},dep,{300 * n},{3000 + 300 * n},9.1,3.2,7.0,Unknown,2,3.5\n" for n in HOURS)


def _requests() -> str:
    rows = [f"{300 * n},{n},2,3.5,7,300,900,{n % 2}" for n in HOURS]
    return "\n".join(["arrival_s,batch_id,cores,mem_gb,dur_bin,dur_lo_s,dur_hi_s,censored", *rows, ""])


def _hourly() -> str:
    rows = [f"7,{n % 4},{3600 * n},2,10,20,8000,100,2000,12" for n in HOURS]
    head = (
        "month,vm_file,epoch_hour,cores,cpu_mean_pct,cpu_max_pct,mem_cap_mb,mem_used_mean_mb,mem_used_max_mb,n_samples"
    )
    return "\n".join([head, *rows, ""])


def _google_2011() -> str:
    return "".join(
        f"{1_000_000 * (600 + 10 * n)},,1,{n % 4},9,{kind},user,2,9,0.02,0.01,0.001,0\n"
        for n, kind in enumerate((0, 0, 1, 1, 1, 8, 2, 4, 1, 1, 7, 0))
    )


def _google_2019() -> str:
    return "".join(
        json.dumps(
            {
                "time": str(1_000_000 * (600 + 10 * n)),
                "type": kind,
                "collection_id": "5",
                "instance_index": n % 4,
                "resource_request": {"cpus": 0.02, "memory": 0.01},
            }
        )
        + "\n"
        for n, kind in enumerate((3, 3, "SCHEDULE", 3, 10, "FINISH", 4, 8, 3, 0))
    )


def _alibaba_2017() -> str:
    return "".join(f"{60 * n},{'Create' if n < 8 else 'Remove'},{n % 8},9,4,0.04,0.1,1|2\n" for n in HOURS)


def _alibaba_2018() -> str:
    return "".join(f"c_{n % 8},m,{60 * n},app,{'started' if n < 8 else 'stopped'},400,400,1.5\n" for n in HOURS)


def _notifications() -> str:
    found = []
    for n, act in enumerate(("create", "create", "resize_finish", "exists", "delete", "power_off", "unshelve")):
        flavor = {"nova_object.data": {"vcpus": 2, "memory_mb": 2048 * (1 + n % 2)}}
        data = {"uuid": f"vm-{n % 2}", "tenant_id": "blue", "state": "active", "launched_at": "2026-11-01T10:00:00Z"}
        event = "compute.instance.exists" if act == "exists" else f"instance.{act}.end"
        payload = {"nova_object.data": {**data, "flavor": flavor}}
        found.append(
            json.dumps({"event_type": event, "timestamp": f"2026-11-01 10:{n:02}:00.5", "payload": payload}) + "\n"
        )
    return "".join(found)


TEXTS: dict[str, Callable[[], str]] = {
    "csv": _csv,
    "azure-v1": _vmtable,
    "azure-v2": _vmtable,
    "azure-requests": _requests,
    "bitbrains-hourly": _hourly,
    "google-2011": _google_2011,
    "google-2019": _google_2019,
    "alibaba-2017": _alibaba_2017,
    "alibaba-2018": _alibaba_2018,
    "nova-notifications": _notifications,
}


def _parquet(path: Path) -> None:
    frame = polars.DataFrame(
        {"start_seconds": [0, 60, 120], "vcpus": [1.0, 2.0, 4.0], "memory_mib": [1024, 2048, 4096]}
    )
    frame.with_columns(end_seconds=polars.lit(500), group=polars.lit("acme")).write_parquet(path)


def _packing(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, starttime, endtime)")
        database.execute("CREATE TABLE vmType (vmTypeId, machineId, core, memory)")
        database.executemany("INSERT INTO vm VALUES (?, 1, 1, ?, ?)", [(n, n / 10, n / 10 + 1) for n in HOURS])
        database.execute("INSERT INTO vmType VALUES (1, 0, 0.1, 0.2)")
    database.close()


def _nova(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE instances ({NOVA_TABLE})")
        rows = [(f"vm-{n}", f"2026-11-01 {n:02}:00:00.000000") for n in HOURS]
        database.executemany("INSERT INTO instances VALUES (?, 'blue', 2, 2048, ?, NULL, NULL, 0)", rows)
    database.close()


FILES: dict[str, Callable[[Path], None]] = {"parquet": _parquet, "azure-packing": _packing, "database": _nova}


def sample(name: str, folder: Path) -> bytes:
    """Return the file of a format; of `bitbrains` the file of a VM."""
    if name in TEXTS:
        return TEXTS[name]().encode()
    if name == "bitbrains":
        rows = [f"{300 * n};\t2;\t5000;\t90;\t1.8;\t4194304;\t1024;\t0;\t0;\t0;\t0" for n in HOURS]
        return "\n".join([BITBRAINS, *rows, ""]).encode()
    path = folder / f"sample-{name}"
    FILES[name](path)
    return path.read_bytes()
