"""Observe: ``/metrics`` scraping, process and host sampling, facts about the host."""

from scaletest.observe.observer import Observer, Pids, Targets

__all__ = ["Observer", "Pids", "Targets"]
