"""Projects by name or ID, and by ID alone where the user may not look for them."""

import pytest

from tests.fixtures import sample_rack

BLUE, GREEN = sample_rack.BLUE, sample_rack.GREEN


@pytest.mark.parametrize("given", ["blue", BLUE, "blue --project-domain Default", "blue --project-domain default"])
def test_a_name_and_an_id_are_the_same_project(json_of, given):
    shown = json_of(f"memory project show {given}")
    assert (shown["project_id"], shown["max_pool_percent"]) == (BLUE, 40)
    assert json_of(f"memory project set {given} --max-pool-percent 41")["project_id"] == BLUE
    assert json_of(f"memory project unset {given} --max-pool-percent")["max_pool_percent"] is None
    assert [row["Consumer"] for row in json_of(f"memory split list --project {given}")] == [
        row["Consumer"] for row in json_of(f"memory split list --project-id {BLUE}")
    ]
    assert len(json_of(f"memory allocation list --project {given}")) == 2


@pytest.mark.parametrize("verb", ["show", "set --max-pool-percent 5", "unset --max-pool-percent"])
def test_who_is_unknown_is_told(openstack, json_of, verb):
    status, out, err = openstack(f"memory project {verb} nobody")
    assert (status, out) == (1, "")
    assert "No project with a name or ID of 'nobody' exists" in err
    assert {row["Project"] for row in json_of("memory project list")} == {BLUE, GREEN}


def test_a_name_in_two_domains(openstack, json_of):
    status, _, err = openstack("memory project set twin --max-pool-percent 5")
    assert (status, "More than one project exists with the name 'twin'" in err) == (1, True)
    assert json_of("memory project set twin --project-domain second --max-pool-percent 5")["project_id"] == "p-twin-2"
    status, _, err = openstack("memory project show twin --project-domain third")
    assert (status, "No domain with a name or ID of 'third' exists" in err) == (1, True)


def test_who_may_not_look_for_projects_gives_an_id(json_of, identity):
    identity.forbidden = True
    assert json_of(f"memory project show {BLUE}")["max_pool_percent"] == 40
    assert json_of(f"memory project show {BLUE} --project-domain default")["max_pool_percent"] == 40
    assert json_of("memory project set new-one --max-pool-percent 7")["project_id"] == "new-one"
    assert len(json_of(f"memory allocation list --project {BLUE}")) == 2
    assert json_of("memory split list --project nobody") == []
    assert any(path.startswith("/projects") for path in identity.asked)


def test_what_is_set_for_a_project_that_is_gone_can_be_unset(openstack, json_of, identity):
    identity.forbidden = True
    json_of("memory project set gone --max-pool-percent 7")
    identity.forbidden = False
    assert json_of("memory project show gone")["max_pool_percent"] == 7
    assert json_of("memory project unset gone --max-pool-percent")["max_pool_percent"] is None
    assert openstack("memory project show gone")[0] == 1


@pytest.mark.parametrize("collection", ["allocation", "split"])
def test_lists_take_an_id_as_it_is(json_of, openstack, identity, collection):
    assert json_of(f"memory {collection} list --project-id gone") == []
    assert json_of(f"memory {collection} list") != []
    assert identity.asked == []
    with pytest.raises(SystemExit):
        openstack(f"memory {collection} list --project-id {BLUE} --project blue")
