"""A page of entities as a grid: columns, cells, cursor, layouts, formats and saved URLs."""
