"""Probes: what operators see from the outside."""
