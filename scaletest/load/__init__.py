"""Load: the Locust driver process and its flows."""
