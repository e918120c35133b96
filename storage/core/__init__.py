"""Base of all subjects: how each declares its contributions, and the registry that collects them."""
