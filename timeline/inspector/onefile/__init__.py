"""A conversation as one HTML file: the inspector's page with the log inside, which opens from disk and asks nobody."""
