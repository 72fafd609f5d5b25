"""A fuzzer of the readers and of the command line: `make fuzz`."""
