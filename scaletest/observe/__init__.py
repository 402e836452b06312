"""Observation: /metrics, processes, the host."""
