"""History: versions of entities, the past of tables, and the change feed.

SQL: storage/sql/history.py and storage/sql/feed.py.
"""
