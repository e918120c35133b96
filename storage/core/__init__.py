"""What every subject stands on: how it declares what it contributes, and the registry that collects it."""
