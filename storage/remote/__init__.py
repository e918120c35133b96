"""Remote table services: a protocol client, and Azurite's files."""
