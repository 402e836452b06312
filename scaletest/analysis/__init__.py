"""Analysis: pure functions of the journal."""
