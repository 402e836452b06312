"""Profiles: schema, loading, overrides, objectives."""
