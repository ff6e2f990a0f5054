"""Numbered steps from an empty store to this version's, `NNNN_name.sql`. A step is never changed once released."""
