"""Survey: what many servers say of their tools, recorded, counted and shown."""
