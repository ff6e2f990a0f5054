"""What stores and clients ask of hints: one profile a file, each with its public sources and the day they were read."""
