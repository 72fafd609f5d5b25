"""Programs made of the library; nothing imports them but the command line, by name."""
