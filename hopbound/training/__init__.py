"""What training finds: one run from one strict config, and grids of runs with their table of results."""
