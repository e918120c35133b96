"""Table design: the partitions, keys, kinds of entities and queries of a table, and patterns that serve them better."""
