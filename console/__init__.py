"""Console: Django pages with htmx, one folder per subject."""
