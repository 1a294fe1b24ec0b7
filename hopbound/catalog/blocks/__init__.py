"""What a layer of a file holds: from fields of a config to mixers with their sizes, a file for each group of them."""
