"""The Faust application, and what it needs over either transport: fetches, tables, membership in the group."""
