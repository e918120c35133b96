"""Hours of mixed load: memory, descriptors, connections, disk and latencies, sampled and drawn."""
