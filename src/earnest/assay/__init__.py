"""The test bench: what a server's tools do, watched in a sandbox, against what they claim."""
