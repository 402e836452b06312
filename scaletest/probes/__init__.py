"""Probes: small periodic measurements of the control plane from the outside, as its users meet it."""

from scaletest.probes.run import AccessFor, run_probes

__all__ = ["AccessFor", "run_probes"]
