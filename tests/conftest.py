"""What holds for every test: hypothesis does not judge how fast an example was, as the machine may be busy."""

from hypothesis import HealthCheck, settings

settings.register_profile("busy", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
