"""The evaluator: may each running pod, taken out, be on its own node? The answers as findings, kept up to date."""
