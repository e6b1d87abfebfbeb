"""What a scheduler gets to know of the splits of instances, and that it gets each change once."""

import pytest

from pondstack.controller.pool import split_catalog
from pondstack.controller.pool.split_catalog import SplitCatalog
from pondstack.domain.known_split import KnownSplit, Present
from pondstack.domain.sizing import Split
from pondstack.ledger.store import RememberedSplit

SPLIT = Split(7168, 1024, "static", 1.0, "15 %")


def remembered(uuid, split=SPLIT):
    return RememberedSplit(uuid, "key", split)


def known(uuid, present=None):
    return KnownSplit(uuid, present, "key", SPLIT)


def test_only_what_is_new_travels():
    catalog = SplitCatalog()
    catalog.remember([remembered("a"), remembered("b")])
    first = catalog.since(0)
    assert (first.items, first.full, first.more) == ((known("a"), known("b")), True, False)
    catalog.remember([remembered("a")])
    assert catalog.since(first.version).items == ()
    catalog.see({"a": Present(8192, 1024)})
    second = catalog.since(first.version)
    assert (second.items, second.full) == ((known("a", Present(8192, 1024)),), False)
    assert catalog.since(second.version).items == ()


def test_pages_join_to_the_whole():
    catalog = SplitCatalog(page=2)
    catalog.remember([remembered(uuid) for uuid in "abcde"])
    version, items, more, full = 0, [], True, []
    while more:
        changes = catalog.since(version)
        version, more = changes.version, changes.more
        items += [item.instance_uuid for item in changes.items]
        full.append(changes.full)
    assert items == list("abcde")
    assert full == [True, False, False]


def test_what_is_forgotten_is_told():
    catalog = SplitCatalog()
    catalog.remember([remembered("a"), remembered("b")])
    catalog.see({"a": Present(8192, 1024)})
    version = catalog.since(0).version
    catalog.remember([remembered("b")], all_there_is=True)
    assert catalog.since(version).items == (KnownSplit("a", Present(8192, 1024)),)
    catalog.see({})
    assert catalog.since(version).items == (KnownSplit("a"),)
    assert catalog.get("a") is None


def test_who_missed_too_much_gets_all_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(split_catalog, "TOMBSTONES", 1)
    catalog = SplitCatalog()
    catalog.remember([remembered(uuid) for uuid in "abc"])
    version = catalog.since(0).version
    catalog.remember([remembered("c")], all_there_is=True)
    changes = catalog.since(version)
    assert changes.full
    assert [item.instance_uuid for item in changes.items if not item.gone] == ["c"]


def test_a_version_of_the_future_gets_all():
    """Of another life of this catalog."""
    catalog = SplitCatalog()
    catalog.remember([remembered("a")])
    assert catalog.since(77).full


def test_what_was_predicted_again_travels_as_a_change():
    catalog = SplitCatalog()
    catalog.remember([remembered("a"), remembered("b")])
    version = catalog.since(0).version
    catalog.renew({"a": 3072, "nobody": 1024})
    changes = catalog.since(version)
    assert [(item.instance_uuid, item.renewed_mib) for item in changes.items] == [("a", 3072)]
    assert KnownSplit.from_wire(changes.items[0].to_wire()) == changes.items[0]
    catalog.renew({})
    assert [item.renewed_mib for item in catalog.since(changes.version).items] == [None]
    assert KnownSplit.from_wire({"instance_uuid": "a"}).renewed_mib is None, "of a former release"
