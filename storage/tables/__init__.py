"""Tables and their indexes."""
