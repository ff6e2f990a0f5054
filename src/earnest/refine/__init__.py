"""Refiners: what the arguments of one call say about it that the tool as a whole does not."""
