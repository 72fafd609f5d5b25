"""Surfaces: from two raw clouds to matches between them, and from a motion to a better one that is checked."""
