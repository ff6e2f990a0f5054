"""Containment: boxes in which a command can harm nobody (`box.py`), and the tiers that make them."""
