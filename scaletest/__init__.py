"""scaletest: a control-plane load and scale test harness for Kubernetes."""

__version__ = "0.1.0"
