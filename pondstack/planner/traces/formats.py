"""The formats of files, by the name that users give. Their modules need the extra, and are imported when used."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from pondstack.domain.errors import BadRequest

if TYPE_CHECKING:
    from pondstack.planner.traces.imported import Imported, Options

CSV, PARQUET = "csv", "parquet"
_HERE = "pondstack.planner.traces"
LOADERS = {
    CSV: (f"{_HERE}.plain:read_csv", "CSV with the columns of a trace: what you put there"),
    PARQUET: (f"{_HERE}.plain:read_parquet", "Parquet with the columns of a trace, as imports write it"),
    "azure-v1": (
        f"{_HERE}.azure_vmtable:v1",
        "vmtable.csv.gz of Azure Public Dataset V1: times, sizes, load, subscriptions",
    ),
    "azure-v2": (
        f"{_HERE}.azure_vmtable:v2",
        "vmtable.csv.gz of Azure Public Dataset V2: times, bounds of sizes, load, subscriptions",
    ),
    "azure-requests": (
        f"{_HERE}.azure_requests:read",
        "requests of Azure V1 (azure2017): bounds of times, sizes, batches",
    ),
    "azure-packing": (
        f"{_HERE}.azure_packing:read",
        "SQLite database of Azure's trace for packing, 2020: times, shares of a host, tenants",
    ),
    "bitbrains": (
        f"{_HERE}.bitbrains:read",
        "folder of GWA-T-12 Bitbrains, a file for each VM: times, sizes, load, bounds of untouched memory",
    ),
    "bitbrains-hourly": (
        f"{_HERE}.bitbrains:read_hourly",
        "GWA-T-12 Bitbrains as one file by VM and hour: times, sizes, load, bounds of untouched memory",
    ),
    "google-2011": (
        f"{_HERE}.google_2011:read",
        "task_events of Google's clusterdata-2011-2: times, shares of a host, users; of tasks",
    ),
    "google-2019": (
        f"{_HERE}.google_2019:read",
        "instance_events of Google's ClusterData2019, as lines of JSON: times, shares of a host, jobs; of tasks",
    ),
    "alibaba-2017": (
        f"{_HERE}.alibaba:v2017",
        "container_event.csv of Alibaba's trace of 2017: times, vCPUs, shares of a host's memory; of containers",
    ),
    "alibaba-2018": (
        f"{_HERE}.alibaba:v2018",
        "container_meta.csv of Alibaba's trace of 2018: times, vCPUs, shares of a host's memory, applications; of "
        "containers",
    ),
    "nova-notifications": (
        f"{_HERE}.nova_notifications:read",
        "log of Nova's notifications, a file or a folder: times, sizes with resizes, projects",
    ),
}
"""Name: (MODULE:FUNCTION, what it is and what it gives). The function is an imported.Loader."""
CLOUDS = {
    "nova": "a running cloud, by the APIs of Nova and Placement",
    "pondstack": "the same, with what pondstack knows of untouched memory",
    "database": "databases of Nova's cells, or restored dumps of them",
}
"""What is no file: imports only."""
SUFFIXES = {".parquet": PARQUET, ".csv": CSV, ".csv.gz": CSV}


def guessed(path: Path) -> str:
    """Return the format that a file's name tells; raises BadRequest where it tells none."""
    for suffix, name in SUFFIXES.items():
        if path.name.endswith(suffix):
            return name
    raise BadRequest(f"{path}: its name tells no format; give --format, of {', '.join(sorted(LOADERS))}")


def read(path: Path, name: str, options: "Options") -> "Imported":
    """Read a trace. Raises BadRequest (what cannot be read, where, what to do), OSError."""
    found: Imported = resolve_name(LOADERS[name][0])(path, options)
    return found
