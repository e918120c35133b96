"""A checker of the history of clients while processes were killed and connections cut, against its laws."""
