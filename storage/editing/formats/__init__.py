"""Ways of spelling numbers, dates and yes or no; each format rewrites its texts as their type is usually written."""
