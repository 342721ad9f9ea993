"""How commands answer: tables for people, versioned documents for programs, reports for CI, progress."""
