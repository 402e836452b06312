"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline: the machine is small and shared. The same examples in every run: a test that fails, fails again.
settings.register_profile("scaletest", deadline=None, derandomize=True)
settings.load_profile("scaletest")
