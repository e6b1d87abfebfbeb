"""CSV and Parquet: what is kept, what is dropped and why, what is refused."""

import gzip
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import plain, rows
from pondstack.planner.traces.imported import Hosts, Imported, Options

HEADER = "start_seconds,end_seconds,vcpus,memory_mib,load_percent,untouched_percent,group,id"
GOOD = "100,200,2,4096,12.5,40,acme,a"


def read(folder: Path, *lines: str, end: str = "\n", **options: int) -> Imported:
    """Read a file of these lines."""
    path = folder / "cloud.csv"
    path.write_text("\n".join((HEADER, *lines)) + end)
    return plain.read_csv(path, Options("", **options))  # type: ignore[arg-type]


def test_a_row_becomes_a_server_and_the_first_start_is_zero(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD, '160.7,,0.5,1.4,,,"",b')
    assert found.trace.servers.schema == dict(rows.SCHEMA)
    assert found.trace.servers.rows() == [
        (0, 100, 2.0, 4096, 12.5, 40.0, "acme"),
        (60, None, 0.5, 1, None, None, None),
    ]
    assert (found.trace.end_of_trace_seconds, found.trace.dropped, found.rows) == (100, (), 2)
    assert (found.trace.name, found.trace.origin, found.notes) == ("cloud.csv", "csv", ())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("100,200,2,4096,12.5,40,acme", "it has another number of fields"),
        (f"{GOOD},more", "it has another number of fields"),
        ("100,200,2,4096,12.5,40,acme,", "its id is missing"),
        ("soon,200,2,4096,12.5,40,acme,b", "start_seconds is no number within 3,000 years"),
        (",200,2,4096,12.5,40,acme,b", "start_seconds is no number within 3,000 years"),
        ("1e30,2e30,2,4096,12.5,40,acme,b", "start_seconds is no number within 3,000 years"),
        ("100,later,2,4096,12.5,40,acme,b", "end_seconds is no number"),
        ("100,inf,2,4096,12.5,40,acme,b", "end_seconds is no number"),
        ("100,1e12,2,4096,12.5,40,acme,b", "end_seconds is no number within 3,000 years"),
        ("100,99,2,4096,12.5,40,acme,b", "it ends before it starts"),
        ("100,200,0,4096,12.5,40,acme,b", "vcpus is not over 0 and up to 65536"),
        ("100,200,nan,4096,12.5,40,acme,b", "vcpus is not over 0 and up to 65536"),
        ("100,200,2,-1,12.5,40,acme,b", "memory_mib is not from 1 to 1099511627776"),
        ("100,200,2,,12.5,40,acme,b", "memory_mib is not from 1 to 1099511627776"),
        ("100,200,2,4096,busy,40,acme,b", "load_percent is no number"),
        ("100,200,2,4096,101,40,acme,b", "load_percent is not from 0 to 100"),
        ("100,200,2,4096,12.5,-1,acme,b", "untouched_percent is not from 0 to 100"),
        ("90,95,1,1024,,,,a", "its id is that of a row before it"),
    ],
)
def test_what_is_no_server_is_dropped_with_its_reason_and_line(tmp_path: Path, line: str, reason: str) -> None:
    found = read(tmp_path, GOOD, line, "300,400,1,1,,,,z")
    assert found.trace.dropped == (Dropped(reason, 1, 3),)
    assert found.trace.servers.height == 2
    assert found.rows == 3


def test_a_reason_is_counted_once_for_each_row(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD, "x,1,0,0,,,,b", "x,1,0,0,,,,c", "100,99,2,1,,,,d")
    assert found.trace.dropped == (
        Dropped("start_seconds is no number within 3,000 years", 2, 3),
        Dropped("it ends before it starts", 1, 5),
    )


def test_a_last_line_without_its_end_is_not_guessed(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD, "100,200,2,4096,12.5,40,acme,b", end="")
    assert found.trace.dropped == (Dropped("the file ends within it", 1, 3),)


def test_unsorted_rows_are_sorted_and_it_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "50,60,1,1,,,,a", "20,30,1,2,,,,b", "20,30,1,3,,,,c")
    assert found.trace.servers["memory_mib"].to_list() == [2, 3, 1]
    assert found.trace.servers["start_seconds"].to_list() == [0, 0, 30]
    assert found.notes == ("1 rows start before the row ahead of them (first: 3); all were sorted",)


def test_servers_that_end_after_the_trace_still_run_and_later_ones_are_dropped(tmp_path: Path) -> None:
    found = read(tmp_path, "0,50,1,1,,,,a", "0,51,1,1,,,,b", "51,60,1,1,,,,c", end_seconds=50)
    assert found.trace.servers["end_seconds"].to_list() == [50, None]
    assert found.trace.dropped == (Dropped("it starts after the end of the trace at 50 s", 1, 4),)


def test_windows_line_ends_and_a_byte_order_mark_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "cloud.csv"
    path.write_bytes(b"\xef\xbb\xbf" + f"{HEADER}\r\n{GOOD}\r\n\r\n".encode())
    found = plain.read_csv(path, Options(""))
    assert (found.trace.servers.height, found.trace.dropped) == (1, ())


def test_columns_may_come_in_any_order_and_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "cloud.csv"
    path.write_text("Memory_MiB,comment,vcpus,start_seconds\n2048,x,1,7\n")
    assert plain.read_csv(path, Options("mine")).trace.servers.rows() == [(0, None, 1.0, 2048, None, None, None)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "has no column start_seconds, vcpus, memory_mib"),
        (b"start_seconds,vcpus\n1,2\n", "has no column memory_mib"),
        (b"start_seconds,vcpus,memory_mib,vcpus\n1,1,1,1\n", "has vcpus twice"),
        (b"start_seconds,vcpus,memory_mib\n", "It is empty"),
        (b"start_seconds,vcpus,memory_mib\n1,0,1\n", "none of its 1 rows is a server. 1 rows: vcpus is not over 0"),
        (b"start_seconds,vcpus,memory_mib\n1,1,1\n2,\xff\xfe,1\n", "line 3: invalid utf"),
        (b"\xff\xfe\n", "line 1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_and_where(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "cloud.csv"
    path.write_bytes(text)
    with pytest.raises(BadRequest) as refused:
        plain.read_csv(path, Options(""))
    assert said in refused.value.message
    assert str(path) in refused.value.message


def test_a_truncated_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cloud.csv.gz"
    whole = gzip.compress("\n".join([HEADER, *(f"{n},,1,1,,,,{n}" for n in range(5000)), ""]).encode())
    path.write_bytes(whole)
    assert plain.read_csv(path, Options("")).trace.servers.height == 5000
    for cut in (4, 12, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:-cut])
        with pytest.raises(BadRequest, match="get the file again"):
            plain.read_csv(path, Options(""))


def test_a_missing_file_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        plain.read_csv(tmp_path / "cloud.csv", Options(""))
    with pytest.raises(FileNotFoundError):
        plain.read_parquet(tmp_path / "cloud.parquet", Options(""))


def test_what_an_import_wrote_is_read_as_it_was(tmp_path: Path) -> None:
    first = read(tmp_path, "100,200,2,4096,12.5,40,acme,a", "50,,1,1,,,,b", "x,,1,1,,,,c")
    kept = Imported(first.trace, first.rows, first.notes, Hosts(3, 96, 3 << 19))
    path = tmp_path / "cloud.parquet"
    plain.write(kept, path)
    again = plain.read_parquet(path, Options(""))
    assert again.trace.servers.equals(kept.trace.servers)
    assert (again.rows, again.notes, again.hosts) == (3, first.notes, kept.hosts)
    assert (again.trace.name, again.trace.origin) == ("cloud.csv", "csv")
    assert again.trace.end_of_trace_seconds == 150
    assert again.trace.dropped == first.trace.dropped
    assert not list(tmp_path.glob("*.new"))


def test_other_parquet_is_checked_as_csv_is(tmp_path: Path) -> None:
    path = tmp_path / "cloud.parquet"
    frame = polars.DataFrame({"start_seconds": [5, 7, 9], "vcpus": [1.0, None, 2.0], "memory_mib": ["64", "64", "x"]})
    frame.write_parquet(path)
    found = plain.read_parquet(path, Options(""))
    assert found.trace.servers.height == 1
    assert [item.first_row for item in found.trace.dropped] == [2, 3]


def test_parquet_at_which_polars_panics_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make security ONLY=traces SEED=20261128` makes such a file."""
    path = tmp_path / "trace.parquet"
    polars.DataFrame({"start_seconds": [0], "vcpus": [2], "memory_mib": [2048]}).write_parquet(path)

    def panics(*_arguments: object) -> None:
        raise polars.exceptions.PanicException("assertion failed")

    monkeypatch.setattr(rows, "_collect", panics)
    with pytest.raises(BadRequest, match=r"trace\.parquet: assertion failed; nothing was read"):
        plain.read_parquet(path, Options(""))


def test_parquet_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cloud.parquet"
    polars.DataFrame({"start_seconds": [5], "vcpus": [1]}).write_parquet(path)
    with pytest.raises(BadRequest, match="lacks memory_mib"):
        plain.read_parquet(path, Options(""))
    frame = polars.DataFrame({"start_seconds": [5], "vcpus": [1], "memory_mib": [64]})
    frame.with_columns(polars.from_epoch("start_seconds")).write_parquet(path)
    with pytest.raises(BadRequest, match="no numbers in start_seconds"):
        plain.read_parquet(path, Options(""))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(BadRequest, match="get the file again"):
        plain.read_parquet(path, Options(""))
    frame.write_parquet(path, metadata={plain.KEY: '{"version": 99}'})
    with pytest.raises(BadRequest, match="of version 99"):
        plain.read_parquet(path, Options(""))
    frame.write_parquet(path, metadata={plain.KEY: "{"})
    with pytest.raises(BadRequest, match="damaged"):
        plain.read_parquet(path, Options(""))


FIELD = st.one_of(
    st.sampled_from(["", "0", "1", "-1", "2.5", "nan", "inf", "1e400", "0x10", "100", '"7"', " 3 ", "a,b", "\x00"]),
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.text(max_size=4),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.lists(FIELD, max_size=10).map(",".join), max_size=12), st.sampled_from(["", "\n", "\r\n"]))
def test_any_text_is_a_trace_or_refused_and_no_row_is_lost(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "cloud.csv"
    path.write_bytes(("\n".join([HEADER, *lines]) + end).encode("utf-8", "surrogatepass"))
    _is_sound_or_refused(path)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_after_good_rows_are_judged(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "cloud.csv"
    path.write_bytes(f"{HEADER}\n{GOOD}\n".encode() + tail)
    _is_sound_or_refused(path)


def _is_sound_or_refused(path: Path) -> None:
    try:
        found = plain.read_csv(path, Options(""))
    except BadRequest:
        return
    servers = found.trace.servers
    assert found.rows == servers.height + sum(item.rows for item in found.trace.dropped)
    assert servers["start_seconds"].is_sorted()
    assert servers["start_seconds"][0] == 0
    sound = (
        (
            (polars.col("end_seconds") >= polars.col("start_seconds"))
            & (polars.col("end_seconds") <= found.trace.end_of_trace_seconds)
            & (polars.col("start_seconds") <= found.trace.end_of_trace_seconds)
        ).fill_null(True)
        & (polars.col("vcpus") > 0)
        & (polars.col("memory_mib") > 0)
    )
    assert servers.filter(~sound).is_empty()
