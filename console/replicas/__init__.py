"""Page of the database replicas, for operators."""
