"""What all rooms share: errors, journal, histogram, units, processes, access."""
