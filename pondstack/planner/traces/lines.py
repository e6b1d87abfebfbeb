"""Text files of rows, read in pieces: each row keeps its line number, and what no row is can be told.

Fields are separated by one character. Quotes around a field are taken off; a separator within quotes is not known, and
such a row has too many fields. Files that end in .gz are unpacked as they are read.
"""

import gzip
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars
from polars.exceptions import ComputeError, PanicException, PolarsError

from pondstack.domain.errors import BadRequest

LINE, ROW, WIDTH, WHOLE, CUT = "line", "row", "width", "whole", "cut"
BROKEN = (PolarsError, PanicException, OSError)
"""What reading raises where a file is damaged or away; Polars panics at some Parquet files, which is no Exception."""


def header(path: Path, separator: str = ",") -> list[str]:
    """Return the names in the first line, lower case. Raises BadRequest, OSError."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        try:
            first = file.readline(1 << 16).decode("utf-8-sig")
        except (EOFError, OSError, UnicodeDecodeError) as error:
            raise unreadable(path, error) from error
    return [_bare(name) for name in first.rstrip("\r\n").split(separator)]


def _bare(name: str) -> str:
    return name.strip().strip('"').strip().lower()


def columns(path: Path, wanted: Mapping[str, int], width: int, *, separator: str = ",", skip: int) -> polars.LazyFrame:
    """Return `row` (its line, from 1), `width` (whether it has so many fields), `cut`, and the wanted fields as text.

    `wanted`: positions from 0 by name. `skip`: lines before the first row. An empty field is null; empty lines are no
    rows. `cut`: the last line of a file has no end, so that more may have been to come.
    """
    line = polars.col(LINE).str.strip_chars_end("\r")
    fields = line.str.split_exact(separator, max(width - 1, 1))
    text = {
        name: fields.struct.field(f"field_{position}").str.strip_chars().str.strip_chars('"').str.strip_chars()
        for name, position in wanted.items()
    }
    return (
        polars.scan_lines(path, name=LINE, row_index_name=ROW, row_index_offset=1)
        .filter(polars.col(ROW) > skip, line.str.strip_chars() != "")
        .select(
            polars.col(ROW),
            (line.str.count_matches(separator, literal=True) == width - 1).alias(WIDTH),
            (polars.col(ROW) == _unended(path)).alias(CUT),
            *(polars.when(found != "").then(found).alias(name) for name, found in text.items()),
        )
    )


def rules(present: Sequence[str]) -> list[tuple[str, polars.Expr]]:
    """Return the reasons to drop a line as such, of those columns of lines that a frame has."""
    found = {
        WIDTH: ("it has another number of fields", ~polars.col(WIDTH)),
        WHOLE: ("it is no JSON object", ~polars.col(WHOLE)),
        CUT: ("the file ends within it", polars.col(CUT)),
    }
    return [rule for name, rule in found.items() if name in present]


def objects(path: Path, wanted: Mapping[str, Sequence[str]]) -> polars.LazyFrame:
    """Return `row` (its line, from 1), `whole` (whether it has a JSON object), `cut`, and the wanted values as text.

    The object is what is from the first brace of a line on: logs have words ahead of it. `wanted`: paths of JSONPath by
    name, of which the first one that is there counts. An empty text is null; empty lines are no rows. An object in the
    field `oslo.message` of another one counts for that one: the envelope of oslo.messaging.
    """
    line = polars.col(LINE).str.extract(r"(\{.*)$", 1)
    opened = polars.coalesce(line.str.json_path_match("$['oslo.message']"), line)
    return (
        polars.scan_lines(path, name=LINE, row_index_name=ROW, row_index_offset=1)
        .filter(polars.col(LINE).str.strip_chars() != "")
        .select(
            polars.col(ROW),
            opened.alias(LINE),
            opened.str.json_path_match("$").str.starts_with("{").fill_null(False).alias(WHOLE),
            (polars.col(ROW) == _unended(path)).alias(CUT),
        )
        .select(ROW, WHOLE, CUT, *(_value(paths).alias(name) for name, paths in wanted.items()))
    )


def _value(paths: Sequence[str]) -> polars.Expr:
    found = polars.coalesce(polars.col(LINE).str.json_path_match(path) for path in paths)
    return polars.when(found != "").then(found)


def number(name: str) -> polars.Expr:
    """Return a column of text as numbers; null where it is none."""
    return polars.col(name).cast(polars.Float64, strict=False)


def files(path: Path, *endings: str) -> list[Path]:
    """Return a file itself, or a folder's files with these endings, by name. Raises BadRequest for none."""
    if not path.is_dir():
        return [path]
    found = sorted(item for item in path.iterdir() if item.name.endswith(endings))
    if not found:
        raise BadRequest(f"{path} has no file that ends in {' or '.join(endings)}")
    return found


def _unended(path: Path) -> int:
    """Return the number of the last line where it has no end, 0 where it has one. gzip's own checksum tells as much."""
    if path.suffix == ".gz" or not path.stat().st_size:
        return 0
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return 0
    try:
        return int(polars.scan_lines(path).select(polars.len()).collect(engine="streaming").item())
    except BROKEN as error:
        raise unreadable(path, error) from error


def positions(path: Path, names: Mapping[str, bool], separator: str = ",") -> tuple[dict[str, int], int]:
    """Return where each of the names is in the header, and how many fields it has.

    `names`: True where the column has to be there. Raises BadRequest for one that is missing or there twice.
    """
    found = header(path, separator)
    missing = [name for name, needed in names.items() if needed and name not in found]
    twice = [name for name in names if found.count(name) > 1]
    if missing or twice:
        what = f"has no column {', '.join(missing)}" if missing else f"has {', '.join(twice)} twice"
        raise BadRequest(f"{path}: the header {what}; it has {', '.join(found)[:300]}")
    return {name: found.index(name) for name in names if name in found}, len(found)


def unreadable(path: Path, error: BaseException) -> BadRequest:
    """Return why a file cannot be read as text, and where it begins to be none."""
    where = _first_bad_line(path) if isinstance(error, ComputeError | UnicodeDecodeError) else ""
    return BadRequest(
        f"{path}{where}: {error}; nothing was read: get the file again where it was cut off or damaged, or give the "
        "format that it has"
    )


def _first_bad_line(path: Path) -> str:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return f", line {number}"
    except (EOFError, OSError):
        return ""
    return ""
