"""vMotions that repair findings: which are due, how many at once, and carrying one out."""
