"""What a box has for an internet: one that is made up (`sink.py`), or a few hosts of the real one (`outlet.py`).

But for `authority.py` all of it runs in a box's own processes: the standard library alone."""
