"""What may take a verdict back, one file each: what it looks at, its constants, its sentence."""
