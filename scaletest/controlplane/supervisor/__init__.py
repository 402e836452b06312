"""The supervisor of one cluster: limits, restarts, host guard, lifetime. ``python -m scaletest.controlplane.supervisor``.

It takes a ``ClusterPlan`` (see ``scaletest.controlplane.plan``) and is spoken to through
``scaletest.controlplane.control``. Everything here imports only the standard library and ``scaletest.core``.
"""
