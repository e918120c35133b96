"""Tables: create, change, delete, list; their indexes and their distribution."""
