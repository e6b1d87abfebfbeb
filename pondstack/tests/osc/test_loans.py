"""The commands of loans and shares."""

from tests.fixtures import sample_rack

CONSUMER, LOAN = sample_rack.CONSUMERS[0], sample_rack.LOAN
JOE = {"token": f"joe:{sample_rack.BLUE}"}


def test_loan_list(json_of, openstack):
    rows = json_of("memory loan list")
    assert len(rows) == 4
    assert [row["UUID"] for row in json_of(f"memory loan list --consumer {CONSUMER}")] == [LOAN]
    assert [row["Guaranteed"] for row in json_of("memory loan list --guaranteed")] == [True, True]
    assert [row["Guaranteed"] for row in json_of("memory loan list --best-effort")] == [False, False]
    assert [row["UUID"] for row in json_of("memory loan list --host host-1 --lender host-3")] == [LOAN]
    assert json_of("memory loan list --limit 1") == rows[:1]
    text = openstack("memory loan list")[1]
    for buffers in ("host-1: 0-1 online ", "host-1: 2 releasing, leaving ", "host-3: 0 online, key disclosed "):
        assert f"| {buffers}" in text


def test_loan_show(json_of, openstack):
    loan = json_of(f"memory loan show {LOAN}")
    assert (loan["consumer_uuid"], loan["host"], loan["lent_mib"]) == (CONSUMER, "host-1", 64)
    assert loan["buffers"][0]["disclosed"] is True
    status, _, err = openstack(f"memory loan show {CONSUMER}")
    assert status == 1
    assert f"no loan {CONSUMER}" in err


def test_share_list_and_show(json_of, openstack):
    share = json_of(f"memory share show {CONSUMER}")
    assert (share["pool_mib"], share["remote_mib"], share["remote_lent_mib"], share["disk_mib"]) == (2048, 128, 64, 64)
    assert len(json_of("memory share list")) == 6
    assert [row["Consumer"] for row in json_of("memory share list --host host-1 --limit 1")] == [CONSUMER]
    assert "| host-1 |" in openstack(f"memory share list --consumer {CONSUMER}")[1]
    status, _, err = openstack(f"memory share show {LOAN}")
    assert status == 1
    assert "all of its memory is local" in err


def test_a_project_is_shown_no_place(json_of, openstack):
    (loan,), shares = json_of("memory loan list", **JOE), json_of("memory share list", **JOE)
    assert (loan["UUID"], loan["Host"], loan["Buffers"]) == (LOAN, None, None)
    assert [share["Hosts"] for share in shares] == [None, None]
    for line in ("memory loan list", f"memory loan show {LOAN}", "memory share list", f"memory share show {CONSUMER}"):
        status, out, err = openstack(line, **JOE)
        assert status == 0, err
        assert "host-" not in out


def test_what_a_host_borrows(openstack):
    assert "| 128 MiB guaranteed, 128 MiB best effort " in openstack("memory host show host-2")[1]
    assert "| borrowing       | -  " in openstack("memory host show host-3")[1]
