"""Hosts that have their turn: emptied by vMotions, put into maintenance mode, and taken out where that is asked."""
