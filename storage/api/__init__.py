"""The management API: accounts and everything in them except entities, for scripts and CI."""
