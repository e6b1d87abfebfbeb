"""Time limits of a history, in virtual seconds: the options' defaults made short, in the same proportions."""

from types import SimpleNamespace

from pondstack.controller.reconcile.observation import Limits
from pondstack.ha.broker import BrokerTerms
from pondstack.ha.lease import Terms

TERMS = Terms(lease_seconds=1.5, renew_seconds=0.4, margin_seconds=0.1, succession_seconds=3.0)
BROKER_TERMS = BrokerTerms(check_seconds=0.4, silent_seconds=2.5)
POLL_SECONDS = 0.3
DOWN_SECONDS = 5.0
LIMITS = Limits(
    agent_down_seconds=DOWN_SECONDS,
    unclaimed_grace_seconds=2.0,
    assign_timeout_seconds=8.0,
    settle_seconds=0.5,
    stuck_seconds=30.0,
)
RECONCILE_SECONDS = 2.0
RESYNC_SECONDS = 11.0
PROMOTION_REPORT_SECONDS = 0.5
AGENT_CALL_SECONDS = 1.0
CONTROLLER_CALL_SECONDS = 1.0
ATTACH_SECONDS = 3.0
DATABASE_RETRY_SECONDS = 3.0
LEASE_RETRY_SECONDS = 0.3
HEARTBEAT_SECONDS = 1.5
UNANSWERED_SECONDS = 5.0
KEEP_SECONDS = 60.0

FREE_BUFFER_MAX_PERCENT = 30
"""Pools of histories are small: a fixed buffer is at most as large."""

LEADS_AGAIN_SECONDS = 8.0
"""So soon somebody leads who reaches the broker: a silence, an entry in the list, a hand-over, a look, and a while."""

CONSISTENT_SECONDS = 60.0
"""All has to be consistent so soon after the last fault and operation."""

SLEEPS_END_SECONDS = 180.0
"""All plans, and all ways to sleep and back, have to end so soon: as long as their deadlines, one after the other."""


def controller_conf(name: str, buffer_slices: int, *, ask_active_hosts: bool = False) -> SimpleNamespace:
    """Return what pondstack.controller reads of its configuration."""
    controller = SimpleNamespace(
        name=name,
        agent_down_seconds=DOWN_SECONDS,
        agent_timeout_seconds=AGENT_CALL_SECONDS,
        agent_calls=8,
        ask_active_hosts=ask_active_hosts,
        free_buffer_slices=buffer_slices,
        free_buffer_max_percent=FREE_BUFFER_MAX_PERCENT,
        free_buffer_window_seconds=30.0,
        free_buffer_hold_seconds=6.0,
        reconcile_interval_seconds=RECONCILE_SECONDS,
        inventory_settle_seconds=0.0,
        resync_interval_seconds=RESYNC_SECONDS,
        operations_keep_seconds=7 * 24 * 3600.0,
        unclaimed_grace_seconds=LIMITS.unclaimed_grace_seconds,
        assign_timeout_seconds=LIMITS.assign_timeout_seconds,
        report_settle_seconds=LIMITS.settle_seconds,
        device_failed_seconds=LIMITS.device_failed_seconds,
    )
    ha = SimpleNamespace(
        lease_seconds=TERMS.lease_seconds,
        poll_seconds=POLL_SECONDS,
        follow_seconds=1.0,
        node_report_seconds=0.4,
        node_down_seconds=6.0,
        promotion_report_seconds=PROMOTION_REPORT_SECONDS,
        drain_seconds=1.0,
    )
    return SimpleNamespace(
        controller=controller,
        ha=ha,
        metrics=SimpleNamespace(bind_host="127.0.0.1", port=0),
        nova=SimpleNamespace(notifications=False),
        mitigation=SimpleNamespace(
            interval_seconds=1.0,
            max_per_host=1,
            max_per_rack=2,
            keep_seconds=KEEP_SECONDS,
            stuck_seconds=LIMITS.mitigation_stuck_seconds,
        ),
        sizing=SimpleNamespace(static_pool_percent=25),
        sleep=SimpleNamespace(interval_seconds=1.0, stuck_seconds=900.0),
        consolidation=SimpleNamespace(interval_seconds=1.0, auto_seconds=1800.0, keep_seconds=KEEP_SECONDS),
    )


def agent_conf(host: str) -> SimpleNamespace:
    """Return what pondstack_agent.build reads of its configuration."""
    agent = SimpleNamespace(
        state_dir="",
        controller_timeout_seconds=CONTROLLER_CALL_SECONDS,
        mitigation_headroom_mib=0,
        mitigation_chunk_mib=64,
        libvirt_uri="",
    )
    tiering = SimpleNamespace(
        demotion="leave", promotion="leave", promote_limit_mib_per_second=0, watermark_scale_factor=0, interleave=""
    )
    lending = SimpleNamespace(transport="")
    power = SimpleNamespace(
        waker_folder=f"/nowhere/{host}", launcher="", waker_timeout_seconds=1.0, doorbell=False, doorbell_seconds=1.0
    )
    parts = {"agent": agent, "tiering": tiering, "lending": lending, "power": power}
    plane = SimpleNamespace(arrival_seconds=1800.0)
    return SimpleNamespace(host=host, data_plane=plane, **parts, config_file=())
