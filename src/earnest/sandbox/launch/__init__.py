"""What runs as a box's own process, under `python -I -S`: the standard library alone, nothing of earnest but this folder and
`internet/`."""
