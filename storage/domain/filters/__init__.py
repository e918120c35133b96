"""``$filter``: the tree of a condition, its parser and writer, and the key range it has to read.

https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities
"""
