"""Users of the rack's broker."""

from pathlib import Path

from pondstack_rack.services import broker_users


def test_what_is_kept_of_the_racks_queues_goes_with_the_rack(tmp_path: Path) -> None:
    kept = [tmp_path / "host1_pondstack-agent.22000_qmanager", tmp_path / "another"]
    for path in (*kept, tmp_path / "host1_pondstack-agent.21000_qmanager"):
        path.touch()
    broker_users.forget_queues(21000, tmp_path)
    assert sorted(path for path in tmp_path.iterdir() if path.is_file()) == sorted(kept)
