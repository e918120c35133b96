"""Files of rows that become entities, and entities that become files: plain Python, and always a stream."""
