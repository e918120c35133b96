"""Help: documentation, keyboard shortcuts, limits, the API reference and licenses."""
