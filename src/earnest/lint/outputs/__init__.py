"""Outputs: each writes findings in one format, over the one finding type."""
