"""Keeping the topics equal to what a server shows: list, compare, watch, resume; and what is not believed."""
