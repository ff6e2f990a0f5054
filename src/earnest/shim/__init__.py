"""What a client starts: hands its pipes to the daemon and waits. Standard library alone, nothing of
earnest."""
