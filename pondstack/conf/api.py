"""Options of the REST API: group [api]."""

from typing import Any

from oslo_config import cfg

GROUP = cfg.OptGroup("api", title="REST API", help="Options of the REST API (the `memory` service).")

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "check each token with Keystone (group [keystone_authtoken])"),
            ("noauth2", "believe the token 'user:project' and the X-Roles header: for tests only"),
        ],
        help="How requests are authenticated.",
    ),
    cfg.StrOpt(
        "public_url",
        default="",
        regex=r"^(https?://[^\s/?#]+(/[^\s?#]*[^\s/?#])?)?$",
        help="Address of this API as its clients reach it, without a slash at the end, for the links in its answers. "
        "Empty: links name the host that the request's Host header names, which its sender chooses.",
    ),
    cfg.IntOpt(
        "page_size",
        default=100,
        min=1,
        max=10000,
        help="Number of objects in one page of a list when the request gives no limit.",
    ),
    cfg.IntOpt(
        "page_size_max",
        default=1000,
        min=1,
        max=10000,
        help="Largest number of objects in one page of a list; a larger limit in a request is cut to it.",
    ),
    cfg.IntOpt(
        "controller_timeout_seconds",
        default=15,
        min=1,
        max=600,
        help="Seconds that a request waits for the controller before it is answered with 503.",
    ),
    cfg.IntOpt(
        "retry_after_seconds",
        default=2,
        min=1,
        max=3600,
        help="Seconds that a 503 answer tells its client to wait (header Retry-After): about as long as a stand-by "
        "controller needs to take over.",
    ),
    cfg.IntOpt(
        "leader_max_age_seconds",
        default=10,
        min=1,
        max=3600,
        help="Seconds since the leader renewed its lease after which /healthcheck reports it as lost. Longer than a "
        "fail-over takes, so that a load balancer keeps the API while a stand-by takes over.",
    ),
    cfg.IntOpt(
        "health_timeout_seconds",
        default=3,
        min=1,
        max=60,
        help="Seconds that /healthcheck waits for one broker before it reports it as unreachable.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register group [api]; registering twice is harmless."""
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, OPTIONS)]
