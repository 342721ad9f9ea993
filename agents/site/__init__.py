"""One site as it was read: the snapshot, and the parts of its objects that rules read. Knows no rule."""
