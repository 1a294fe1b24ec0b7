"""Fooling pairs for given weights: search, shrink, replay."""

from hopbound.falsify.pair import SCHEMA, FoolingPair, fools, replay
from hopbound.falsify.search import SearchResult, find_pair, find_smallest_pair, simplify

__all__ = ["SCHEMA", "FoolingPair", "SearchResult", "find_pair", "find_smallest_pair", "fools", "replay", "simplify"]
