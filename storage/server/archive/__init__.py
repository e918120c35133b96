"""The archive of the embedded database's log, from which it is restored to a moment of the past."""
