"""The report of a census: a static site, its pictures, its pages."""
