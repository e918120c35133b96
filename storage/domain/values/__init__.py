"""EDM values, names, ETags, and their encodings in JSON and XML."""
