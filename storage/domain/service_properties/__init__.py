"""Service properties: logging, metrics and CORS rules, as values and as XML."""
