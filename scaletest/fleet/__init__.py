"""The fleet: fake nodes and the objects that stand on them."""
