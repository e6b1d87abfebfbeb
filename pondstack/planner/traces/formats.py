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
    CSV: (f"{_HERE}.plain:read_csv", "CSV with the columns of a trace"),
    PARQUET: (f"{_HERE}.plain:read_parquet", "Parquet with the columns of a trace, as imports write it"),
    "azure-v1": (f"{_HERE}.azure_vmtable:v1", "vmtable.csv.gz of Azure Public Dataset V1"),
    "azure-v2": (f"{_HERE}.azure_vmtable:v2", "vmtable.csv.gz of Azure Public Dataset V2"),
    "azure-requests": (f"{_HERE}.azure_requests:read", "requests of Azure V1, with bounds of lifetimes (azure2017)"),
    "azure-packing": (f"{_HERE}.azure_packing:read", "SQLite database of Azure's trace for packing, 2020"),
    "bitbrains": (f"{_HERE}.bitbrains:read", "folder of GWA-T-12 Bitbrains, a file for each VM"),
    "bitbrains-hourly": (f"{_HERE}.bitbrains:read_hourly", "GWA-T-12 Bitbrains as one file by VM and hour"),
}
"""Name: (MODULE:FUNCTION, what it is). The function is an imported.Loader."""
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
