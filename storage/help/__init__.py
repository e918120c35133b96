"""Help: the documentation, shortcuts, limits and the API reference.

Pages: console/help/.
"""
