"""The past in the console: the versions of an entity, and tables as of a time."""
