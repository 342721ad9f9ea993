"""What each command does: options in, an answer on standard output out. Imported when a command runs."""
