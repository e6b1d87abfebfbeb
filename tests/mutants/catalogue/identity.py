"""Faults planted where messages on the bus are signed and judged."""

from tests.mutants.mutant import Mutant

_IDENTITY = "pondstack/rpc/identity"
_BORDER = "pondstack/tests/rpc/identity/test_border.py"
_CREDENTIAL = "pondstack/tests/rpc/identity/test_credential.py"
_ATTACKS = "tests/security/test_attacks.py"
_VERBS = "tests/security/test_verbs.py"
_REFUSALS = "pondstack/tests/rpc/identity/test_refusal_log.py"
_REVOKED = "tests/security/test_revocations.py"
_MIGRATIONS = "pondstack/tests/controller/node/test_migrations.py"
_ASKERS = "agent/tests/pool/test_askers.py"

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
    Mutant(
        "a_sender_says_who_called",
        f"{_IDENTITY}/caller.py",
        "    rest.pop(KEY, None)\n",
        "",
        (f"{_BORDER}::test_nobody_says_himself_who_called",),
        "an unsigned call of an upgrade is taken for one of the host's own nova-compute",
    ),
    Mutant(
        "any_compute_hears_what_a_server_holds",
        "agent/pondstack_agent/pool/askers.py",
        "        if not self._controller.confirm_migration(**about):\n",
        "        if False:\n",
        (f"{_ASKERS}::test_another_hosts_compute_hears_nothing_of_a_server_that_stays",),
        "a host that was taken over reads what any server holds anywhere",
    ),
    Mutant(
        "the_own_compute_needs_a_controller",
        "agent/pondstack_agent/pool/askers.py",
        "        if caller is None or caller.name == self._host:\n",
        "        if caller is None:\n",
        (f"{_ASKERS}::test_the_own_compute_hears_it_without_a_controller",),
        "no guest starts again while no controller answers",
    ),
    Mutant(
        "a_claim_alone_is_a_migration",
        "pondstack/controller/node/migrations.py",
        "    return source in hosts and destination in claimed\n",
        "    return destination in claimed\n",
        (f"{_MIGRATIONS}::test_both_must_say_so",),
        "a host asks of whom it knows nothing where it is claimed",
    ),
    Mutant(
        "slices_alone_are_a_migration",
        "pondstack/controller/node/migrations.py",
        "    return source in hosts and destination in claimed\n",
        "    return source in hosts\n",
        (f"{_MIGRATIONS}::test_both_must_say_so", f"{_MIGRATIONS}::test_a_server_moves_to_the_host_that_it_claims"),
        "every host hears what every server holds",
    ),
    Mutant(
        "a_controller_that_is_behind_undoes_a_revocation",
        f"{_IDENTITY}/revocations.py",
        "for name, at in {**told, **self.moments}.items()})",
        "for name, at in told.items()})",
        (f"{_REVOKED}::test_a_controller_that_is_behind_lets_nobody_in_again",),
        "a host that was shut out is let in by each second view of the rack",
    ),
    Mutant(
        "an_earlier_revocation_takes_the_place_of_a_later_one",
        f"{_IDENTITY}/revocations.py",
        "max(told.get(name, at), at)",
        "min(told.get(name, at), at)",
        (f"{_REVOKED}::test_a_controller_that_is_behind_lets_nobody_in_again",),
        "a credential that was issued between two revocations stays good",
    ),
    Mutant(
        "a_flood_is_logged_line_by_line",
        f"{_IDENTITY}/refusal_log.py",
        "        if known is None and kind != BEYOND:\n",
        "        if kind != BEYOND:\n",
        (f"{_REFUSALS}::test_a_flood_makes_one_line_and_a_number",),
        "who sends a million forged messages fills the disk with a million lines",
    ),
    Mutant(
        "what_a_sender_chose_makes_a_line_of_its_own",
        f"{_IDENTITY}/refusal_log.py",
        '    return _VARIES.sub("*", text)\n',
        "    return text\n",
        (f"{_REFUSALS}::test_a_flood_hides_nobody_else",),
        "a new name in each message is a new line in the log",
    ),
    Mutant(
        "kinds_of_refusals_are_not_bounded",
        f"{_IDENTITY}/refusal_log.py",
        "            if kind not in self._kinds and len(self._kinds) >= self._most:\n",
        "            if False:\n",
        (f"{_REFUSALS}::test_more_kinds_than_that_are_counted_together",),
        "the memory of refusals grows with what strangers send",
    ),
)
