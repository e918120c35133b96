"""Plain Python model of entities, EDM values, filters and changes: no I/O, no clock, no framework."""
