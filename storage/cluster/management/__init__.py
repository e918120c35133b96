"""The commands of the command line that move tables over the nodes of a cluster."""
