"""The test bench: what a server does, watched in a box, against what it says."""
