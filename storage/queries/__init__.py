"""Saved queries, and the editor and builder of filters.

Code: console/queries/. Filters as people edit them: storage/editing/filters/.
"""
