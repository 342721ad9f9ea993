"""Settings by group, and reading them from a YAML file, the environment and flags."""
