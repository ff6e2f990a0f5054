"""The daemon as a process: start and end, the descriptors it is handed, who handed them, what survives it."""
