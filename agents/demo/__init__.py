"""The demo's story, told while the pipeline runs over a simulated site."""
