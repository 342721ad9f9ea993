"""Findings as OpenReports: what they say, which are missing, and the write."""
