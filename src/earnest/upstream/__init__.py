"""Links to servers: what opens them, speaks to them and notices when they are gone."""
