"""Which evictions repair what is broken, and which pods may be evicted at all."""
