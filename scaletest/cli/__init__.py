"""The command line; the only place that knows Typer."""
