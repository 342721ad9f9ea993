"""Files as the source of a site: dumps, manifests and inventories in, typed objects out."""
