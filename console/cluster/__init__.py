"""Tables over the nodes of a cluster: the card of a table, and the way there and back."""
