"""GGUF files: their metadata, in the spelling of the config.json of a family that is understood."""

from hopbound.catalog.gguf.reader import is_gguf, read_gguf

__all__ = ["is_gguf", "read_gguf"]
