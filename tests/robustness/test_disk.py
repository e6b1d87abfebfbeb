"""The disk that the robustness runs fill: a database on it refuses what needs room, and goes on when there is some."""

from pathlib import Path

import pymysql
import pytest

from pondstack_rack.servers import MariaDBServer
from tests.robustness import disk


def test_a_full_disk_stops_a_database_until_there_is_room(tmp_path: Path) -> None:
    if lacking := disk.missing():
        pytest.skip(lacking)
    with disk.mounted(tmp_path / "db") as small:
        server = MariaDBServer(small.folder)
        try:
            server.start()
            server.database_url("full")
            server.execute("CREATE TABLE full.t (b VARBINARY(1000))")
            small.fill()
            with pytest.raises(pymysql.Error, match="full"):
                server.execute("INSERT INTO full.t SELECT REPEAT('x', 1000) FROM full.seq_1_to_9000")
            small.free()
            server.execute("INSERT INTO full.t SELECT REPEAT('x', 1000) FROM full.seq_1_to_9000")
        finally:
            server.stop()
    assert not (tmp_path / "db.img").exists()
