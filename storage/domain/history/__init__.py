"""History: recorded changes of entities, and the change feed."""
