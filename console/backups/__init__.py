"""The backups of the server, and the alarm about them."""
