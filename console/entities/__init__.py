"""A page of entities, one of them, one of its values: drawn, written for others, edited."""
