"""Core of all subjects: the form of their declarations, and the registry that collects them."""
