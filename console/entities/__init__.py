"""The entities of a table: browse, view, edit, paste and delete them."""
