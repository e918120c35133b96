"""Tables over the nodes of a cluster."""
