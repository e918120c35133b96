"""Plain Python: what an entity, an EDM value, a filter and a change are. No I/O, no clock, no framework."""
