"""The fewest moves that leave nothing broken: which VM goes where, in which order, and why something stays."""
