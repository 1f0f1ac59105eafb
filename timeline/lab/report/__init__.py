"""A comparison as one HTML page with plots, which opens from disk without any outside request."""
