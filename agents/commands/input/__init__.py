"""What commands judge: options, files, a live cluster or a running worker, and what a shell may complete."""
