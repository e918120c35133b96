"""Files of rows that become entities, and entities that become files.

Plain Python, and always a stream. Operations: storage/operations/entities/. Pages: console/imports/.
"""
