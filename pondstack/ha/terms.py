"""The terms of the lease, and of the broker, from [ha]; refused when they cannot work together."""

from oslo_config import cfg

from pondstack.domain.errors import BadRequest
from pondstack.ha.broker import BrokerTerms
from pondstack.ha.lease import Terms

RENEWALS_PER_LEASE = 3
"""So many tries to renew fit into a lease: one that is lost or late does not cost the lead."""


def terms_of(conf: cfg.ConfigOpts) -> Terms:
    """Return the terms; raises BadRequest with what to change."""
    group = conf.ha
    if group.renew_seconds * RENEWALS_PER_LEASE >= group.lease_seconds:
        raise BadRequest(
            f"[ha] renew_seconds ({group.renew_seconds:g}) must be less than a third of lease_seconds "
            f"({group.lease_seconds:g}): set renew_seconds below {group.lease_seconds / RENEWALS_PER_LEASE:.3g}"
        )
    if group.poll_seconds > group.renew_seconds:
        raise BadRequest(
            f"[ha] poll_seconds ({group.poll_seconds:g}) must not be more than renew_seconds "
            f"({group.renew_seconds:g}): a leader renews when it looks"
        )
    if group.margin_seconds * 2 >= group.lease_seconds:
        raise BadRequest(
            f"[ha] margin_seconds ({group.margin_seconds:g}) must be less than half of lease_seconds "
            f"({group.lease_seconds:g})"
        )
    return Terms(
        lease_seconds=group.lease_seconds,
        renew_seconds=group.renew_seconds,
        margin_seconds=group.margin_seconds,
        succession_seconds=group.succession_seconds,
    )


def broker_terms_of(conf: cfg.ConfigOpts) -> BrokerTerms:
    """Return the terms of the broker; raises BadRequest with what to change."""
    terms = broker_terms_as_they_are(conf)
    terms.validate(conf.ha.node_report_seconds)
    return terms


def broker_terms_as_they_are(conf: cfg.ConfigOpts) -> BrokerTerms:
    """Return the same for somebody who only tells of controllers: whether the terms can work is not its business."""
    return BrokerTerms(check_seconds=conf.ha.broker_check_seconds, silent_seconds=conf.ha.broker_silent_seconds)
