"""The test suite. A property holds on a slow machine too: no example is timed, so a busy one cannot fail it."""

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
