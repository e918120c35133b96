"""A page of entities as a grid: columns, cells, page tokens, layouts, file formats and saved URLs."""
