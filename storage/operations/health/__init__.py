"""What an installation depends on: disk, connections, and the version of the database."""
