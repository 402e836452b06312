"""Reports: terminal and JSON, made from a run directory alone."""
