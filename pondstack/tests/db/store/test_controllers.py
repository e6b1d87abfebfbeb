"""The list of controllers: each writes its own row, the lease says who leads."""

from sqlalchemy import update

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import ControllerRow
from pondstack.db.read.reader import SqlReader
from pondstack.db.store import controllers
from pondstack.db.store.leadership import SqlLeadership

DOWN_SECONDS = 60.0


def say(database, name, holder, role="standby", epoch=0, followed_sequence=0, **more):
    return database.write(
        lambda session: controllers.record(
            session, name, holder, role=role, epoch=epoch, followed_sequence=followed_sequence, **more
        )
    )


def silent(database, name, seconds):
    def work(session):
        session.execute(update(ControllerRow).where(ControllerRow.name == name).values(seen_at=now_seconds() - seconds))

    database.write(work)


def roles(database):
    return {item.name: item.role for item in SqlReader(database, node_down_seconds=DOWN_SECONDS).controllers()}


def test_the_lease_says_who_leads(database):
    say(database, "one", "one:1:x", role="leader", epoch=7)
    say(database, "two", "two:1:x")
    assert roles(database) == {"one": "down", "two": "standby"}  # killed or paused: it would know better
    say(database, "one", "one:1:x")
    store = SqlLeadership(database)
    store.take(0, "two:1:x", 20.0)
    assert roles(database) == {"one": "standby", "two": "leader"}
    store.hand_over(1, "one")
    assert roles(database) == {"one": "standby", "two": "standby"}


def test_silence_and_a_word_make_one_down(database):
    for name in ("one", "two", "three"):
        say(database, name, f"{name}:1:x")
    silent(database, "one", DOWN_SECONDS + 1)
    database.write(lambda session: controllers.deregister(session, "two", "two:1:x"))
    assert roles(database) == {"one": "down", "three": "standby", "two": "down"}


def test_a_former_life_does_not_take_the_next_one_off_the_list(database):
    say(database, "one", "one:1:x")
    assert say(database, "one", "one:2:y") == "one:1:x"
    database.write(lambda session: controllers.deregister(session, "one", "one:1:x"))
    assert roles(database) == {"one": "standby"}


def test_what_is_listed(ledger):
    database = ledger.database
    assert say(database, "one", "one:1:x", followed_sequence=1) == ""
    say(database, "one", "one:1:x", epoch=3, followed_sequence=1)
    say(database, "one", "one:1:x", followed_sequence=1)
    ledger.hosts.set("h1", True, "", None)
    (item,) = SqlReader(database).controllers()
    assert (item.name, item.holder, item.epoch, item.followed_sequence, item.lag) == ("one", "one:1:x", 3, 1, 1)
    assert 0 <= item.seen_seconds < 60


def test_those_that_are_gone_for_good_are_forgotten_when_a_new_one_comes(database):
    say(database, "one", "one:1:x")
    say(database, "two", "two:1:x")
    silent(database, "one", controllers.FORGET_SECONDS + 1)
    say(database, "three", "three:1:x")
    assert set(roles(database)) == {"three", "two"}


def test_when_it_last_reached_the_broker(database):
    def reached():
        (item,) = SqlReader(database).controllers()
        return item.reached_seconds

    say(database, "one", "one:1:x")
    assert reached() is None
    say(database, "one", "one:1:x", reached_seconds=3600.0)
    assert 3600.0 <= reached() < 3600.0 + DOWN_SECONDS
    say(database, "one", "one:1:x", reached_seconds=0.0)
    assert 0.0 <= reached() < DOWN_SECONDS
    say(database, "one", "one:2:y")  # its next life does not know yet
    assert reached() is None
