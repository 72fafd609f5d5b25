"""Who belongs to whom: odds of any x with any y, the sets of partners, names."""
