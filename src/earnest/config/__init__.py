"""What a person wrote down: earnest.toml, policy files, client configurations, packs. Read, checked,
located."""
