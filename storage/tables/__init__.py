"""Tables, their settings and property indexes.

Their relations: storage/relations/.
"""
