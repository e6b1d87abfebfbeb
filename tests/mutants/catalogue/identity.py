"""Faults planted where messages on the bus are signed and judged."""

from tests.mutants.mutant import Mutant

_IDENTITY = "pondstack/rpc/identity"
_BORDER = "pondstack/tests/rpc/identity/test_border.py"
_CREDENTIAL = "pondstack/tests/rpc/identity/test_credential.py"
_ATTACKS = "tests/security/test_attacks.py"
_VERBS = "tests/security/test_verbs.py"

MUTANTS = (
    Mutant(
        "a_call_for_another_receiver_is_taken",
        f"{_IDENTITY}/border.py",
        "    return (named,) if topic == AGENT_TOPIC else (topic, named)\n",
        "    return (topic, named)\n",
        (f"{_BORDER}::test_a_call_of_one_host_is_none_of_another",),
        "a call of all agents at once, which nobody means, is taken by each",
    ),
    Mutant(
        "a_signature_is_not_checked",
        f"{_IDENTITY}/border.py",
        "        if not any(self._signed(holder, seal, message, place) for place in _places(topic, receiver)):\n",
        "        if False:\n",
        (
            f"{_BORDER}::test_a_changed_argument_is_noticed",
            f"{_ATTACKS}::test_no_attack_passes_and_every_honest_message_does",
        ),
        "whoever has seen a host's certificate speaks for it",
    ),
    Mutant(
        "an_answer_to_another_request_is_taken",
        f"{_IDENTITY}/border.py",
        "            if seal.nonce != nonce or not",
        "            if not",
        (f"{_BORDER}::test_an_answer_to_another_request_is_refused",),
        "an old answer of the agent is taken for that of now",
    ),
    Mutant(
        "anybody_answers",
        f"{_IDENTITY}/border.py",
        "            expected.check(holder.identity)\n",
        "",
        (f"{_BORDER}::test_an_answer_of_somebody_else_is_refused",),
        "another host answers in an agent's place",
    ),
    Mutant(
        "a_revocation_is_not_looked_at",
        f"{_IDENTITY}/border.py",
        "        if revoked is not None and holder.issued.timestamp() < revoked:\n",
        "        if False:\n",
        (f"{_BORDER}::test_a_revoked_credential_is_refused_and_a_later_one_is_not",),
        "a host that was taken over stays in the rack",
    ),
    Mutant(
        "an_unsigned_error_is_taken",
        f"{_IDENTITY}/client.py",
        "            if self._border.permissive or not came_unsigned(error):\n",
        "            if True:\n",
        (f"{_BORDER}::test_an_answer_that_nobody_signed_is_refused",),
        "somebody tells nova-compute that a guest holds nothing",
    ),
    Mutant(
        "what_came_twice_is_taken",
        f"{_IDENTITY}/freshness.py",
        "            if (sender, nonce) in self._seen:\n",
        "            if False:\n",
        (
            f"{_BORDER}::test_what_was_recorded_is_refused_later",
            f"{_ATTACKS}::test_no_attack_passes_and_every_honest_message_does",
        ),
        "a recorded detach is done again",
    ),
    Mutant(
        "nonces_are_forgotten_too_soon",
        f"{_IDENTITY}/freshness.py",
        "> 2 * self._window:",
        "> 0:",
        (f"{_ATTACKS}::test_no_attack_passes_and_every_honest_message_does",),
        "what was recorded is done again a moment later",
    ),
    Mutant(
        "a_host_speaks_for_another",
        f"{_IDENTITY}/callers.py",
        "        if name != caller.name:\n",
        "        if False:\n",
        (f"{_VERBS}::test_everybody_else_is_refused",),
        "one host releases another one's slices",
    ),
    Mutant(
        "a_verb_without_a_rule_is_everybodys",
        f"{_IDENTITY}/callers.py",
        "    if found is None:\n        raise Refused(",
        "    if found is None:\n        return\n        raise Refused(",
        (f"{_VERBS}::test_what_is_no_verb_is_nobodys",),
        "a new verb may be called by everybody",
    ),
    Mutant(
        "any_authority_is_believed",
        f"{_IDENTITY}/credential.py",
        "        if not any(map(certificate_signed(certificate), self._certificates)):\n",
        "        if False:\n",
        (f"{_CREDENTIAL}::test_another_authoritys_is_not",),
        "who makes an authority of his own is believed",
    ),
    Mutant(
        "a_credential_never_ends",
        f"{_IDENTITY}/credential.py",
        "        if self._clock() >= found.ends:\n",
        "        if False:\n",
        (f"{_CREDENTIAL}::test_one_that_has_ended_is_refused_though_it_was_known",),
        "a credential of years ago is believed",
    ),
    Mutant(
        "any_agent_gets_a_session_with_another",
        f"{_IDENTITY}/callers.py",
        "        OFFER_RDMA: LEADER,\n",
        "        OFFER_RDMA: Callers({Role.AGENT: ANY, Role.CONTROLLER: ANY}),\n",
        ("pondstack/tests/rpc/identity/test_introducer.py::test_nobody_else_gets_an_offer_of_an_agent[agent/h2]",),
        "a host that was taken over writes into the memory of another one's agent",
    ),
    Mutant(
        "offers_are_not_signed",
        "pondstack/rpc/transport.py",
        "            driver.introducer = SignedIntroducer(border)\n",
        "            pass\n",
        ("pondstack/tests/rpc/identity/test_introducer.py::test_a_bus_with_identities_introduces_its_driver",),
        "a password of the broker is enough to agree on a session with an agent",
    ),
)
