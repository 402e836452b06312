"""Control planes: binaries, supervisor, limits, identities."""
