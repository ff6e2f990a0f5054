"""What was seen against what was claimed, and the forms in which that is told."""
