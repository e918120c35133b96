"""The recorded changes of entities: lists, the change feed, versions, the past, and how long they are kept."""
