"""What the admin pages hand to the services: the clock and the release policy of this process."""

from django.conf import settings

from common.clock import Clock, clock_from_path
from release.policy import ReleasePolicy


def clock() -> Clock:
    """Return the configured clock."""
    return clock_from_path(settings.RATCHET_CLOCK)


def policy() -> ReleasePolicy:
    """Return the release policy from the environment; students may override it."""
    configured: ReleasePolicy = settings.RATCHET_RELEASE
    return configured
