"""Commands that distribute tables over the nodes of a cluster."""
