"""Find the map that most pairs agree on, and say whether chance could have done it."""
