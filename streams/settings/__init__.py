"""Configuration: a YAML file, then the environment, then flags."""
