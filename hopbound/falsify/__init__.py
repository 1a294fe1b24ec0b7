"""Fooling pairs for given weights: search, shrink, replay."""

from hopbound.falsify.blocks import BlockPair, MeanKeys, block_pair, colliding_contents
from hopbound.falsify.pair import SCHEMA, FoolingPair, fools, replay
from hopbound.falsify.search import SearchResult, find_pair, find_smallest_pair, simplify
from hopbound.falsify.subject import Subject, break_model, model_subject, random_subject

__all__ = [
    "SCHEMA",
    "BlockPair",
    "FoolingPair",
    "MeanKeys",
    "SearchResult",
    "Subject",
    "block_pair",
    "break_model",
    "colliding_contents",
    "find_pair",
    "find_smallest_pair",
    "fools",
    "model_subject",
    "random_subject",
    "replay",
    "simplify",
]
