"""Health check: a controller renews its lease, so that changes are possible."""

from oslo_middleware.healthcheck import pluginbase

from pondstack_api.errors import translate


class Leader(pluginbase.HealthcheckBaseExtension):
    """Unhealthy when nobody holds the lease, or it was not renewed for [api] leader_max_age_seconds.

    Who asks has shown no token, so the reason has epoch and age only; the details, which [healthcheck] detailed shows,
    name the controller.
    """

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        """Return the result; `server_port` is oslo.middleware's."""
        del server_port
        try:
            leader = self.conf["services"].reader.leader()
        except Exception as error:
            known = translate(error)
            if known is None:
                raise
            return pluginbase.HealthcheckResult(available=False, reason=f"leader: unknown, {known.message}")
        limit = self.oslo_conf.api.leader_max_age_seconds
        if not leader.holder:
            return pluginbase.HealthcheckResult(available=False, reason="leader: none; start pondstack-controller")
        details = f"{leader.holder} leads with epoch {leader.epoch}"
        if leader.age_seconds > limit:
            reason = f"leader: lease is {leader.age_seconds:.0f} s old (limit {limit} s); look at pondstack-controller"
            return pluginbase.HealthcheckResult(available=False, reason=reason, details=details)
        reason = f"leader: OK, epoch {leader.epoch}, renewed {leader.age_seconds:.1f} s ago"
        return pluginbase.HealthcheckResult(available=True, reason=reason, details=details)
