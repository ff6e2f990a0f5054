"""The audits, one a file; `earnest.lint.registry` lists them."""
