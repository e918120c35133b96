"""Framework of the management API, the base of all subjects' views."""
