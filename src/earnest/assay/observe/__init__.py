"""What one call changed: files as records, repositories, places, the network."""
