"""[nova]: Nova's notifications, and its API for what they did not tell; keystoneauth's own options for the latter."""

from keystoneauth1 import loading
from oslo_config import cfg

from pondstack.conf import placement

GROUP = "nova"
SERVICE_TYPE = "compute"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "notifications",
        default=True,
        help="Whether to listen to Nova's versioned notifications. They are hints; without them only the interval "
        "counts. The queue options of [oslo_messaging_rabbit] must be those of nova.conf.",
    ),
    cfg.StrOpt(
        "notification_transport_url",
        default="",
        secret=True,
        help="Message bus of Nova's notifications; empty: transport_url of this file.",
    ),
    cfg.StrOpt(
        "notification_exchange",
        default="nova",
        help="Exchange of Nova's notifications: control_exchange of nova.conf.",
    ),
    cfg.BoolOpt(
        "backfill",
        default=True,
        help="Whether Nova's API is asked for instances whose notifications were lost, and for what was there before. "
        "The user of auth_section must be allowed to list the instances of all projects.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group; idempotent. Unless auth_section says otherwise, the user is that of [placement]."""
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_session_conf_options(conf, GROUP)
    loading.register_adapter_conf_options(conf, GROUP)
    conf.register_opts(OPTIONS, group=GROUP)
    conf.set_default("auth_section", placement.GROUP, group=GROUP)
    conf.set_default("service_type", SERVICE_TYPE, group=GROUP)
    conf.set_default("connect_retries", 2, group=GROUP)
    conf.set_default("status_code_retries", 2, group=GROUP)
    # One page of a large cloud's instances takes seconds; a dead connection must not hold the leader's end up for ever.
    conf.set_default("timeout", 60, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    shared = [
        *loading.get_auth_common_conf_options(),
        *loading.get_auth_plugin_conf_options("password"),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(),
    ]
    return [(GROUP, [*OPTIONS, *shared])]
