"""Jobs: work that exceeds the time limit of a request."""
