"""Short links to pages.

Operations: storage/operations/links/. Pages: console/home/.
"""
