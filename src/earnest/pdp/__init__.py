"""The policy decision point: what gateway, hook and guard share."""
