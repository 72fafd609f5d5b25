"""What you call: each file reads like its algorithm."""
