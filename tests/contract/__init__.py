"""One suite for each protocol, run on everything that claims to satisfy it."""
