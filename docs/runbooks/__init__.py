"""The runbooks, in the package as `underhost.runbooks`: the page shows them beside findings."""
