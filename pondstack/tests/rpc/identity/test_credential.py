"""Credentials: whom a certificate names, who signed it, and until when."""

import datetime
import stat

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from pondstack.domain.errors import BadRequest, Refused
from pondstack.rpc.identity.credential import AUTHORITY, Authority, Credential, file_name, find, utc_now
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.identity.issuer import Issuer, write_private, write_public

AGENT = Identity(Role.AGENT, "h1")
CONTENT = b"what is signed"


def later(days):
    return lambda: utc_now() + datetime.timedelta(days=days)


@pytest.fixture
def issuer():
    return Issuer.make()


@pytest.fixture
def authority(issuer):
    return Authority([issuer.certificate])


@pytest.mark.parametrize("text", ["agent/h1", "compute/node-1.example.org", "controller/c_1", "api/a"])
def test_an_identity_is_a_role_and_a_name(text):
    assert str(Identity.parse(text)) == text


@pytest.mark.parametrize("text", ["", "h1", "agent", "agent/", "root/h1", "agent/h 1", "agent/../x", "agent/h1\n"])
def test_another_text_is_none(text):
    with pytest.raises(BadRequest, match="identity"):
        Identity.parse(text)


def test_who_has_the_authoritys_credential_is_believed(issuer, authority):
    credential = issuer.issue(AGENT, 1)
    holder = authority.holder(credential.der)
    assert holder.identity == AGENT
    assert holder.signed(credential.sign(CONTENT), CONTENT)
    assert not holder.signed(credential.sign(CONTENT), CONTENT + b"!")
    assert not holder.signed(issuer.issue(AGENT, 1).sign(CONTENT), CONTENT), "another key of the same name"


def test_another_authoritys_is_not(authority):
    with pytest.raises(Refused, match="not this rack's"):
        authority.holder(Issuer.make().issue(AGENT, 1).der)


def test_while_the_authority_is_replaced_both_are_believed(issuer):
    following = Issuer.make()
    both = Authority([issuer.certificate, following.certificate])
    assert {both.holder(made.issue(AGENT, 1).der).identity for made in (issuer, following)} == {AGENT}


def test_a_holder_cannot_issue(issuer):
    """An agent's own key signs no certificate that anybody believes."""
    agent = issuer.issue(AGENT, 1)
    forged = Issuer(agent._key, agent.certificate).issue(Identity(Role.CONTROLLER, "c1"), 1)
    with pytest.raises(Refused, match="not this rack's"):
        Authority([issuer.certificate]).holder(forged.der)


def test_the_authoritys_own_certificate_names_nobody(issuer, authority):
    with pytest.raises(Refused, match="of nobody"):
        authority.holder(issuer.certificate.public_bytes(Encoding.DER))


def test_one_that_has_ended_is_refused_though_it_was_known(issuer):
    now = [utc_now()]
    authority = Authority([issuer.certificate], lambda: now[0])
    credential = issuer.issue(AGENT, 1)
    authority.holder(credential.der)
    now[0] += datetime.timedelta(days=1, seconds=1)
    with pytest.raises(Refused, match="ended at"):
        authority.holder(credential.der)


def test_clocks_may_differ_by_minutes_only(issuer):
    credential = issuer.issue(AGENT, 1)
    assert Authority([issuer.certificate], later(-4 / 1440)).holder(credential.der)
    with pytest.raises(Refused, match="not valid yet"):
        Authority([issuer.certificate], later(-1)).holder(credential.der)


@pytest.mark.parametrize("junk", [b"", b"\x30\x03\x02\x01\x00", b"x" * 4096])
def test_what_is_no_certificate_is_refused(authority, junk):
    with pytest.raises(Refused, match=r"no certificate|not this rack's"):
        authority.holder(junk)


def test_files_are_their_owners_alone_and_are_read_back(tmp_path, issuer):
    path = tmp_path / "made" / file_name(AGENT)
    write_private(path, issuer.issue(AGENT, 1).pem())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Credential.load(path).identity == AGENT
    assert find(path.parent, AGENT).identity == AGENT


def test_each_service_finds_its_own(tmp_path, issuer):
    for identity in (AGENT, Identity(Role.API, "a"), Identity(Role.COMPUTE, "node")):
        write_private(tmp_path / file_name(identity), issuer.issue(identity, 1).pem())
    assert find(tmp_path, Role.API).identity.name == "a"
    assert find(tmp_path, Role.AGENT).identity == AGENT, "whichever it is, where the name is of no importance"
    assert find(tmp_path, Identity(Role.COMPUTE, "short")).identity.name == "node", "Nova's own name may be another"
    with pytest.raises(BadRequest, match=r"agent-h2\.pem"):
        find(tmp_path, Identity(Role.AGENT, "h2"))
    with pytest.raises(BadRequest, match="has none"):
        find(tmp_path, Role.SCHEDULER)
    write_private(tmp_path / "api-b.pem", issuer.issue(Identity(Role.API, "b"), 1).pem())
    with pytest.raises(BadRequest, match=r"api-a\.pem, api-b\.pem"):
        find(tmp_path, Role.API)


def test_a_file_of_somebody_else_is_noticed(tmp_path, issuer):
    write_private(tmp_path / file_name(AGENT), issuer.issue(Identity(Role.AGENT, "h2"), 1).pem())
    with pytest.raises(BadRequest, match="is that of agent/h2"):
        find(tmp_path, AGENT)


@pytest.mark.parametrize("content", [b"", b"junk", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_file_says_what_to_do(tmp_path, content):
    path = tmp_path / "agent-h1.pem"
    path.write_bytes(content)
    with pytest.raises(BadRequest, match="credentials issue"):
        Credential.load(path)


def test_a_certificate_of_another_key_is_noticed(tmp_path, issuer):
    path = tmp_path / "agent-h1.pem"
    one, two = issuer.issue(AGENT, 1).pem(), issuer.issue(AGENT, 1).pem()
    path.write_bytes(one[: one.index(b"-----BEGIN CERT")] + two[two.index(b"-----BEGIN CERT") :])
    with pytest.raises(BadRequest, match="another key"):
        Credential.load(path)


def test_the_authority_is_made_once(tmp_path):
    key, certificate = tmp_path / "authority.key", tmp_path / AUTHORITY
    first = Issuer.open(key, certificate)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert Issuer.open(key, certificate).certificate == first.certificate
    key.unlink()
    with pytest.raises(BadRequest, match="is not"):
        Issuer.open(key, certificate)
    other = Issuer.make()
    write_private(key, other._key_pem())
    with pytest.raises(BadRequest, match="no certificate of the key"):
        Issuer.open(key, certificate)
    write_public(certificate, first.authority_pem() + other.authority_pem())
    assert Issuer.open(key, certificate).certificate == other.certificate
