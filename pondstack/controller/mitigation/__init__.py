"""Mitigations (Pond 4.2 and 4.4): a guest's pool memory is taken away for good, by copy or by live migration.

pondstack.domain.mitigation_step decides, `observer` looks, `actor` acts, `mitigator` goes round.
"""
