"""openstack memory consolidation ..."""

UNSET = {"reserve_percent": None, "least_awake": None}


def test_freeze_and_thaw(json_of):
    assert json_of("memory consolidation show") == {"frozen": False, "reason": None, "since": None, **UNSET}
    assert json_of("memory consolidation freeze --reason upgrade")["reason"] == "upgrade"
    assert json_of("memory consolidation thaw")["frozen"] is False


def limits(told):
    return told["reserve_percent"], told["least_awake"]


def test_limits_are_set_one_by_one_and_unset(json_of):
    assert limits(json_of("memory consolidation set --reserve-percent 12.5")) == (12.5, None)
    assert limits(json_of("memory consolidation set --least-awake 0")) == (12.5, 0)
    assert limits(json_of("memory consolidation unset --reserve-percent")) == (None, 0)
    assert limits(json_of("memory consolidation show")) == (None, 0)


def test_what_is_wrong_changes_nothing(openstack, json_of):
    for wrong in ("set", "unset", "set --reserve-percent 101", "set --least-awake -1"):
        status, _, errors = openstack(f"memory consolidation {wrong}")
        assert status == 1, wrong
        assert "say what to change" in errors or "is greater than" in errors or "is less than" in errors, errors
    assert limits(json_of("memory consolidation show")) == (None, None)


def test_an_api_without_limits_is_shown(json_of):
    told = json_of("--os-memory-api-version 1.22 memory consolidation show")
    assert told == {"frozen": False, "reason": None, "since": None, **UNSET}
