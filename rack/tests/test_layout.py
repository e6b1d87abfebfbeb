"""The rack refuses folders and ports that would fail later, and says what to choose instead."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack_rack import ports
from pondstack_rack.layout import Layout, RackError, Sizes


@pytest.fixture
def folder(short_directory: Callable[[str], Path]) -> Path:
    return short_directory("rack") / "r"


def test_a_folder_is_reopened_with_its_secret(folder: Path) -> None:
    made = Layout.make(folder, Sizes(hosts=1))
    assert Layout.make(folder, Sizes(hosts=1)) == made == Layout.load(folder)
    assert (folder / "rack.json").stat().st_mode & 0o777 == 0o600


def test_other_sizes_need_a_rack_down_first(folder: Path) -> None:
    Layout.make(folder, Sizes(hosts=1))
    with pytest.raises(RackError, match=r"hosts=1.*not.*hosts=2.*make rack-down first"):
        Layout.make(folder, Sizes(hosts=2))


def test_a_folder_of_somebody_else_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "precious").touch()
    with pytest.raises(RackError, match="is not a rack's folder"):
        Layout.make(folder, Sizes())
    with pytest.raises(RackError, match="no rack in"):
        Layout.load(folder)
    assert [path.name for path in folder.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (Path("/tmp") / ("x" * 80), "too long for unix sockets.*at most"),
        (Path("/run/rack"), "is below /run"),
        (Path("/tmp/a rack"), "holds a blank"),
    ],
)
def test_unusable_folders_are_refused_before_anything_is_made(path: Path, reason: str) -> None:
    with pytest.raises(RackError, match=reason):
        Layout.make(path, Sizes())
    assert not path.exists()


@pytest.mark.parametrize("sizes", [{"fakes": 65}, {"hosts": 6}, {"slices": 0}, {"port_base": 65500}])
def test_impossible_sizes_are_refused(sizes: dict[str, int], folder: Path) -> None:
    with pytest.raises(RackError, match="choose"):
        Layout.make(folder, Sizes(**sizes))
    assert not folder.exists()


def test_a_taken_port_is_named_with_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RackError, match=rf"port {port}, wanted for keystone, is taken by pid \d+ .*RACK_PORT_BASE"):
            ports.check_free({"keystone": port})
    ports.check_free({"keystone": port})


def test_a_free_range_avoids_taken_ports() -> None:
    base = ports.free_base(10)
    with socket.create_server(("127.0.0.1", base + 7)):
        assert ports.free_base(10) > base
