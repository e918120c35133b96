"""Tables, their settings and property indexes.

Operations: storage/operations/tables/. Their relations: storage/operations/relations/.
"""
