"""What is wrong with the rules themselves, wherever the pods are."""
