"""Service properties, CORS, connection strings, labels, lifetimes and the verbs of activity."""
