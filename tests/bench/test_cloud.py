"""The rack's openrc is read as a shell would."""

from pathlib import Path

import pytest

from pondstack_rack.cloud_client import Cloud, NoRack, read_openrc


def test_openrc_is_read_with_quotes_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "openrc"
    path.write_text(
        "# Source me\nexport OS_USERNAME=admin\nexport OS_PASSWORD='a b'  # secret\nexport PATH=/x:$PATH\n\n"
    )
    assert read_openrc(path) == {"OS_USERNAME": "admin", "OS_PASSWORD": "a b", "PATH": "/x:$PATH"}


def test_without_a_rack_the_text_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoRack, match="run `make rack` first"):
        Cloud.of_rack(tmp_path)


def test_an_openrc_without_credentials_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "openrc").write_text("export OS_AUTH_URL=http://127.0.0.1:1/v3\n")
    with pytest.raises(NoRack, match="sets no OS_USERNAME"):
        Cloud.of_rack(tmp_path)
