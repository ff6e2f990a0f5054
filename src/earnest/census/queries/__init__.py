"""The figures of a census, as SQL for DuckDB: see `earnest.census.figures`."""
