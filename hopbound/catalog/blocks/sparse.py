"""Attention over a chosen or pooled part of the past."""

from dataclasses import dataclass
from typing import Literal

from hopbound.architecture import mixer_spec
from hopbound.catalog.blocks.softmax import PLAIN, Heads, latent_sizes
from hopbound.catalog.fields import Fields
from hopbound.catalog.model import Block


@dataclass(frozen=True, kw_only=True)
class IndexedLatent:
    """Latent attention over the tokens with the best index scores.

    Attributes:
        extra: further numbers beside the index key of a token.
        times: how often the index key is kept.
    """

    extra: int = 0
    times: int = 1

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer; one whose index is that of an earlier layer keeps no index key."""
        index = 0
        if indexer_is_own(fields):
            index = self.times * fields.number("index_head_dim") + self.extra
        sizes = {**latent_sizes(fields), "k": fields.number("index_topk"), "index_dim": index}
        return Block(mixers=(mixer_spec("dsa", sizes),))


def indexer_is_own(fields: Fields) -> bool:
    """Whether a layer scores tokens itself (`full`), or takes the choice of an earlier layer (`shared`).

    Raises:
        InputError: a list of the wrong length, or another word or letter in it.
    """
    words = fields.words("indexer_types")
    name = "indexer_types"
    if words is None:
        name, value = fields.find("index_topk_pattern")
        if isinstance(value, str):
            words = [{"F": "full", "S": "shared"}.get(letter, letter) for letter in value]
        else:
            words = fields.words("index_topk_pattern")
    if words is not None:
        if fields.index >= len(words):
            raise fields.error(name, f"{len(words)} entries", f"one for layer {fields.index}")
        return fields.one_of(f"{name}[{fields.index}]", words[fields.index], ("full", "shared")) == "full"
    if "index_topk_freq" in fields.raw or "index_skip_topk_offset" in fields.raw:
        period = fields.number("index_topk_freq", derived=1)
        offset = fields.number("index_skip_topk_offset", least=0, derived=2)
        return max(fields.index - offset + 1, 0) % period == 0
    return True


def indexed_one_in_four(fields: Fields) -> Block:
    """Latent attention whose layers 0, 1, 5, 9, … choose for those after them, unless the file lists it."""
    if fields.words("indexer_types") is None and not (fields.index == 0 or (fields.index - 1) % 4 == 0):
        sizes = {**latent_sizes(fields), "k": fields.number("index_topk"), "index_dim": 0}
        return Block(mixers=(mixer_spec("dsa", sizes),))
    return IndexedLatent()(fields)


@dataclass(frozen=True)
class Compressed:
    """A window and pooled blocks: all of them (`heavily_compressed_attention`) or chosen ones.

    Attributes:
        kind: the word of the layer.
    """

    kind: Literal["heavily_compressed_attention", "compressed_sparse_attention"]

    @property
    def chosen(self) -> bool:
        """Whether a query reads chosen blocks only."""
        return self.kind == "compressed_sparse_attention"

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        sizes = {
            "heads": fields.number("num_attention_heads"),
            "head_dim": fields.number("head_dim"),
            "w": fields.number("sliding_window"),
            "block": self._rate(fields),
        }
        if self.chosen:
            sizes |= {"k": fields.number("index_topk"), "index_dim": fields.number("index_head_dim"), "overlap": 1}
        return Block(mixers=(mixer_spec("compressed", sizes),))

    def _rate(self, fields: Fields) -> int:
        legacy = "compress_rate_csa" if self.chosen else "compress_rate_hca"
        given = fields.maybe(legacy)
        rates = fields.child("compress_rates")
        if given is None and rates is not None and rates.has(self.kind):
            return rates.number(self.kind)
        return given if given is not None else fields.number(legacy, derived=4 if self.chosen else 128)


def single_key_window(fields: Fields) -> Block:
    """A window over one key that is the value too: a key-value head with a value and no key of its own."""
    width = fields.number("head_dim")
    sizes = {"heads": fields.number("num_attention_heads"), "kv_heads": 1, "head_dim": width, "value_dim": width}
    fields.notes.say("sliding layers keep one vector a token as key and value; counted as two")
    return Block(mixers=(mixer_spec("window", {**sizes, "w": fields.number("sliding_window")}),))


@dataclass(frozen=True, kw_only=True)
class IndexedBlocks:
    """Grouped-query attention over the blocks or tokens with the best index scores.

    Attributes:
        k: field of how many.
        index_dim: field of an index key's numbers.
        block: field of a block's tokens; empty for single tokens.
        where: the sizes of the attention.
    """

    k: str
    index_dim: str
    block: str = ""
    where: Heads = PLAIN

    def __call__(self, fields: Fields) -> Block:
        """The block of one layer."""
        sizes = self.where.sizes(fields) | {
            "k": fields.number(self.k),
            "block": fields.number(self.block) if self.block else 1,
            "index_dim": fields.number(self.index_dim),
        }
        return Block(mixers=(mixer_spec("indexed", sizes),))
