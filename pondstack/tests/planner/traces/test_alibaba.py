"""Alibaba's traces of 2017 and 2018, on small files in their form."""

from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import alibaba
from pondstack.planner.traces.imported import Options

HOST = Options("", host_gib=100.0)


def test_containers_of_2017(tmp_path: Path) -> None:
    path = tmp_path / "container_event.csv"
    path.write_text(
        "0,Create,1,9,4,0.04,0.1,1|2|3|4\n"
        "0,Create,2,9,8,0.08,0.1,5|6\n"
        "41562,Remove,1,9,4,0.04,0.1,\n"
        "50000,Grow,1,9,4,0.04,0.1,\n"
        "60000,Create,3,9,4,-1,0.1,\n"
    )
    found = alibaba.v2017(path, HOST)
    assert found.trace.servers.rows() == [
        (0, 41_562, 4.0, 4096, None, None, None),
        (0, None, 8.0, 8192, None, None, None),
    ]
    assert found.trace.dropped == (
        Dropped("its type of event is not known", 1, 4),
        Dropped("memory_mib is not from 1 to 1099511627776", 1, 5),
    )


def test_containers_of_2018_with_their_repeated_rows(tmp_path: Path) -> None:
    path = tmp_path / "container_meta.csv"
    path.write_text(
        "c_1,m_1,0,app_7,started,400,400,1.56\n"
        "c_1,m_1,200,app_7,started,400,400,1.56\n"
        "c_1,m_2,300,app_7,started,800,800,1.56\n"
        "c_2,m_1,100,app_8,allocated,100,100,101\n"
        "c_3,m_1,100,app_8,allocated,150,150,3.13\n"
        "c_3,m_1,400,app_8,stopped,150,150,3.13\n"
        "c_1,m_1,0,app_7,stopped,800,800,1.56\n"
        "c_1,m_1,350,app_7,unknown,800,800,1.56\n"
    )
    found = alibaba.v2018(path, HOST)
    assert found.trace.servers.rows() == [
        (0, 300, 4.0, 1597, None, None, "app_7"),
        (100, 400, 1.5, 3205, None, None, "app_8"),
        (300, None, 8.0, 1597, None, None, "app_7"),
    ]
    assert found.trace.dropped == (
        Dropped("its memory is marked as invalid", 1, 4),
        Dropped("it stopped at 0, which is before or after the trace", 1, 7),
        Dropped("its type of event is not known", 1, 8),
    )
    assert "1 events tell nothing new of what was there already" in found.notes


def test_the_memory_of_a_host_is_needed(tmp_path: Path) -> None:
    for read in (alibaba.v2017, alibaba.v2018):
        with pytest.raises(BadRequest, match="give --host-gib, of one host"):
            read(tmp_path / "x.csv", Options("", host_vcpus=96))
