"""The report as one HTML file that needs nothing beside it: no network, no other file."""
