"""Real models: from the config.json of a model to its layers, what each keeps, and everything that was assumed."""

from hopbound.catalog.families import FAMILIES
from hopbound.catalog.model import KINDS, Block, Model, ModelLayer
from hopbound.catalog.published import published_models
from hopbound.catalog.reader import read_config
from hopbound.catalog.source import read_model

__all__ = ["FAMILIES", "KINDS", "Block", "Model", "ModelLayer", "published_models", "read_config", "read_model"]
