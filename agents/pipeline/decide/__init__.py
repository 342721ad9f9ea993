"""The decide cycle of a site: wait, evaluate, publish findings, placements and commands, remember."""
