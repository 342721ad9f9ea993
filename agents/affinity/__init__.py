"""Which pods must be apart and which together, by affinity, anti-affinity and spread; and whose rule that is."""
