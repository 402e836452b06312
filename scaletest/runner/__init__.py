"""The runner: phases, conditions, actions."""
