"""The command line: one file a command, argument reading and printing, nothing else."""
