"""Fooling pairs for given weights: search, shrink, replay; two pasts that leave one state."""

from hopbound.falsify.blocks import BlockPair, MeanKeys, block_pair, colliding_contents
from hopbound.falsify.collisions import Collision, state_collision
from hopbound.falsify.language import Adapter, LanguageModel, is_language_model
from hopbound.falsify.pair import SCHEMA, Fooled, FoolingPair, fools, judge, replay
from hopbound.falsify.search import SearchResult, find_pair, find_smallest_pair
from hopbound.falsify.shrink import simplify
from hopbound.falsify.stored import verify_pair
from hopbound.falsify.subject import (
    LanguageSubject,
    Subject,
    break_model,
    language_subject,
    model_subject,
    random_subject,
)

__all__ = [
    "SCHEMA",
    "Adapter",
    "BlockPair",
    "Collision",
    "Fooled",
    "FoolingPair",
    "LanguageModel",
    "LanguageSubject",
    "MeanKeys",
    "SearchResult",
    "Subject",
    "block_pair",
    "break_model",
    "colliding_contents",
    "find_pair",
    "find_smallest_pair",
    "fools",
    "is_language_model",
    "judge",
    "language_subject",
    "model_subject",
    "random_subject",
    "replay",
    "simplify",
    "state_collision",
    "verify_pair",
]
