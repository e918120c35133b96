"""Other table services as this server reads and writes them: a client of their protocol, and Azurite's files.

Plain Python: the caller says which addresses may be connected to, and how to wait.
"""
