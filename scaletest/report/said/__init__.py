"""Sentences on a run, and cells of its tables, that the terminal report and the page share: pure functions of the report document."""
