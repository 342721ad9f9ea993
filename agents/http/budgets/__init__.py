"""What one who asks over HTTP may cost: bytes, values, pods, time, and a share of what is done at one time."""
