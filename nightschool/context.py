"""What a night runs with, built in one place for the tasks and the commands."""

import random
from dataclasses import dataclass

from django.conf import settings

from common.clock import Clock, clock_from_path
from gateway.models import Models
from gateway.settings import GatewaySettings
from nightschool.settings import NightSettings
from release.policy import ReleasePolicy


@dataclass(frozen=True, slots=True)
class NightContext:
    """The clock, the settings and the models of the process."""

    clock: Clock
    nights: NightSettings
    gateway: GatewaySettings
    policy: ReleasePolicy
    models: Models


def night_context() -> NightContext:
    """Build the context from the Django settings."""
    return NightContext(
        clock=clock_from_path(settings.RATCHET_CLOCK),
        nights=settings.RATCHET_NIGHTS,
        gateway=settings.RATCHET_GATEWAY,
        policy=settings.RATCHET_RELEASE,
        models=Models(settings.RATCHET_GATEWAY, random.Random()),
    )
