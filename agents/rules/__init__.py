"""The scheduling rules, one file each, named by the upstream plugin."""
