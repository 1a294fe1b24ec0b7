r"""Evaluation on demand: the logits at the last token, computing only what they depend on.

A built model looks few things up, at few positions; computing every layer at every position would cost O(n²). What an
output depends on is *read off the weights*: a projection whose column is zero does not read that coordinate of the
residual stream, one whose row is zero does not write it. Nothing is assumed about what the weights mean, so that the
same code evaluates a trained model, where everything depends on everything and nothing is saved.

Backwards through the layers, two demands are kept for the input of each layer:

- `everywhere`: columns that must be known at every position (keys and values of attention over the whole past);
- `at`: columns that must be known at a few `positions` (where queries are asked, what windows see, who writes).

A recurrent layer needs only the positions that change its state. Whether one does is decided by its gate columns
(keys, strengths, decays); where no earlier layer writes these they are known from the embedding, and the layer is run
on the subsequence of writers and readers, which gives the same states to the bit.

If a layer's output is demanded everywhere, that layer and what is below it are computed at all positions, attention
there in tiles (`everywhere.py`): O(n²) in time, which is what the weights ask for, but O(n) in memory. Not so where the
map behind it passes it on at few positions, being shut at the others whatever the layer's mixers write (`shut.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopbound.decoder.chunk import Chunk, mapped, matmul, replaced
from hopbound.decoder.everywhere import attend_everywhere, pairs_seen
from hopbound.decoder.shut import depending, embedding_bounds, thresholds, write_bounds
from hopbound.mixers import Mixer, Sight, SoftmaxAttention
from hopbound.mixers.mixer import accumulator, columns_read

if TYPE_CHECKING:
    from hopbound.decoder.model import Decoder, PointwiseMap

CHUNK_ELEMENTS = 2**22  # large enough that threads seldom wait for each other, small enough for the cache
STREAMED_ELEMENTS = 2**27  # what is streamed in chunks: the larger the batch, the fewer times positions are encoded
HELD_ELEMENTS = 2**25  # what is held for the whole batch
TABLE_ELEMENTS = 2**26


@dataclass(frozen=True)
class Demand:
    """What must be known at the input of a layer."""

    everywhere: Bool[Tensor, " width"]
    at: Bool[Tensor, " width"]
    positions: Int[Tensor, " places"]


def demand_logits(decoder: "Decoder", tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch answers"]:
    """Logits at the last token, equal to the whole-sequence forward up to rounding."""
    return _Evaluation(decoder, tokens).logits()


def examples_at_once(decoder: "Decoder", example: Int[Tensor, "one time"]) -> int:
    """How many prompts like `example` to evaluate in one batch."""
    length = example.shape[1]
    places = max(len(demand.positions) for demand in _Evaluation(decoder, example).demands)
    held = places * (length + decoder.config.width) + decoder.config.answers
    return max(1, min(STREAMED_ELEMENTS // (32 * length), HELD_ELEMENTS // held))


def is_local(decoder: "Decoder", example: Int[Tensor, "one time"]) -> bool:
    """Whether the last token's logits need the layers at some positions alone, beside the embedding at all."""
    demands = _Evaluation(decoder, example).demands
    return all(len(demand.positions) < example.shape[1] for demand in demands)


def scores_needed(decoder: "Decoder", example: Int[Tensor, "one time"]) -> int:
    """How many scores of full attention a prompt like `example` needs: what evaluating it costs, where that is much."""
    evaluation = _Evaluation(decoder, example)
    return sum(
        pairs_seen(mixer, evaluation.length, len(after.positions))
        for block, after in zip(evaluation.blocks, evaluation.demands[1:], strict=True)
        for mixer in block.each_mixer()
        if mixer.sight is Sight.ALL and isinstance(mixer, SoftmaxAttention)
    )


def map_demand(pointwise: "PointwiseMap | None", wanted: Bool[Tensor, " width"]) -> Bool[Tensor, " width"]:
    """Columns to know before a position-wise map, for the columns wanted after it."""
    if pointwise is None:
        return wanted
    units = pointwise.fall.weight[wanted].ne(0).any(dim=0)
    return wanted | pointwise.reads(units)


def map_writes(pointwise: "PointwiseMap | None", width: int) -> Bool[Tensor, " width"]:
    """Columns that a position-wise map can change."""
    if pointwise is None:
        return torch.zeros(width, dtype=torch.bool)
    return pointwise.fall.weight.ne(0).any(dim=1) | pointwise.fall.bias.ne(0)


class _Evaluation:
    """One batch through one decoder."""

    def __init__(self, decoder: "Decoder", tokens: Int[Tensor, "batch time"]) -> None:
        self.decoder = decoder
        self.tokens = tokens
        self.length = tokens.shape[1]
        self.blocks = decoder.each_block()
        self.width = decoder.config.width
        self.dense = decoder.config.norm != "none"
        self.all_positions = torch.arange(self.length)
        self.tables: dict[tuple[int, ...], Tensor] = {}
        self.unwritten = self._unwritten()
        self.passed: dict[int, tuple[Tensor, Tensor]] = {}  # by layer: positions and columns where its map is open
        self.known: dict[int, Tensor] = {}  # by layer: what it writes there
        self.demands = self._demands()

    # -- what is demanded ------------------------------------------------------------------------------------------

    def _all(self) -> Bool[Tensor, " width"]:
        return torch.ones(self.width, dtype=torch.bool)

    def _none(self) -> Bool[Tensor, " width"]:
        return torch.zeros(self.width, dtype=torch.bool)

    def _read_out_columns(self) -> Bool[Tensor, " width"]:
        code = self.decoder.config.readout
        if code is None or self.dense:
            return self._all()
        wanted = self._none()
        wanted[code.field.column : code.field.column + code.field.bits] = True
        return wanted

    def _unwritten(self) -> list[Bool[Tensor, " width"]]:
        """For each layer the columns that no layer before it writes: they hold the embedding."""
        still, unwritten = self._all(), []
        for block in self.blocks:
            unwritten.append(still)
            written = map_writes(block.pointwise, self.width)
            for mixer in block.each_mixer():
                written = written | mixer.writes()
            still = still & ~written
        return unwritten

    def _demands(self) -> list[Demand]:
        """The demand at the input of each layer and, last, at the readout."""
        last = torch.tensor([self.length - 1])
        demand = Demand(self._none(), self._read_out_columns(), last)
        demands = [demand]
        for index in reversed(range(len(self.blocks))):
            demands[-1] = demand = self._all_or_few(index, demand)
            demand = self._demand_before(index, demand)
            demands.append(demand)
        return demands[::-1]

    def _all_or_few(self, index: int, after: Demand) -> Demand:
        """The demand after a layer: at all positions if the layer's mixers write what is demanded everywhere."""
        block = self.blocks[index]
        everywhere = map_demand(block.pointwise, after.everywhere)
        if any((mixer.writes() & everywhere).any() for mixer in block.each_mixer()):
            if (passed := self._passed(index, after.everywhere)) is not None:
                self.passed[index] = positions, columns = passed
                return Demand(after.everywhere, after.at | columns, torch.cat([after.positions, positions]).unique())
            return Demand(self._none(), after.at | after.everywhere, self.all_positions)
        return after

    def _passed(
        self, index: int, wanted: Bool[Tensor, " width"]
    ) -> tuple[Int[Tensor, " some"], Bool[Tensor, " width"]] | None:
        """Where a layer's mixers can change columns in `wanted`, by its map alone, and which; None: at most places."""
        block, unwritten = self.blocks[index], self.unwritten[index]
        pointwise = block.pointwise
        if self.dense or pointwise is None or pointwise.gate is not None or self.decoder.config.activation != "relu":
            return None
        if any((mixer.writes() & wanted).any() for mixer in block.each_mixer()):
            return None
        units = depending(pointwise, block, wanted)
        bounds = write_bounds(block, unwritten, embedding_bounds(self.decoder))
        least = thresholds(pointwise, units, unwritten, bounds)
        if least.isinf().any():
            return None
        rise, positions = pointwise.rise.weight[units], []
        for chunk in self._embedding(rise.ne(0).any(dim=0), self.width):
            is_open = (chunk.project(rise) >= least).any(dim=-1).any(dim=0)
            positions.append(chunk.start + is_open.nonzero()[:, 0])
        found = torch.cat(positions)
        if 2 * len(found) > self.length:
            return None
        return found, wanted & pointwise.fall.weight[:, units].ne(0).any(dim=1)

    def _demand_before(self, index: int, after: Demand) -> Demand:
        block = self.blocks[index]
        if self.dense:
            return Demand(self._none(), self._all(), self.all_positions)
        everywhere = map_demand(block.pointwise, after.everywhere)
        at = map_demand(block.pointwise, after.at)
        positions = after.positions
        before_everywhere, before_at, before_positions = everywhere.clone(), at.clone(), [positions]
        for mixer in block.each_mixer():
            if not (mixer.writes() & (at | everywhere)).any():
                continue
            reads = mixer.reads()
            before_at |= reads.query
            if mixer.sight is Sight.ALL:
                before_everywhere |= reads.memory
            else:
                before_at |= reads.memory
                before_positions.append(self._sources(index, mixer, positions))
        return Demand(before_everywhere, before_at, torch.cat(before_positions).unique())

    def _sources(self, index: int, mixer: Mixer[Any, Any], positions: Int[Tensor, " places"]) -> Int[Tensor, " some"]:
        """Earlier positions that the mixer's output at `positions` can depend on."""
        if mixer.sight is Sight.NEAR:
            near = positions[:, None] - torch.arange(mixer.reach + 1)
            return near[near >= 0].unique()
        gate = mixer.reads().gate
        if (gate & ~self.unwritten[index]).any():
            return self.all_positions
        writers = [
            chunk.start + mixer.changes_state(self._widen(chunk)).any(dim=0).nonzero()[:, 0]
            for chunk in self._embedding(gate, self.width)
        ]
        return torch.cat(writers)

    # -- what is computed ------------------------------------------------------------------------------------------

    def logits(self) -> Float[Tensor, "batch answers"]:
        """Forwards through the layers, at the demanded positions."""
        x = self._stream_at(self.demands[0].positions)
        base = 0
        whole: Tensor | None = None
        for index, block in enumerate(self.blocks):
            here, after = self.demands[index], self.demands[index + 1]
            kept = torch.searchsorted(here.positions, after.positions)
            wanted = after.at | after.everywhere
            wanted = map_demand(block.pointwise, wanted)
            normed = block.norm(x)
            if len(here.positions) == self.length:
                base, whole = index, normed
            total = x[:, kept]
            for mixer in block.each_mixer():
                if not (mixer.writes() & wanted).any():
                    continue
                if mixer.sight is Sight.ALL:
                    assert isinstance(mixer, SoftmaxAttention)
                    if len(after.positions) == self.length:
                        total = total + attend_everywhere(mixer, normed)
                    else:
                        total = total + self._attend(mixer, normed[:, kept], after.positions, index, base, whole)
                elif mixer.sight is Sight.NEAR:
                    total = total + self._near(mixer, normed, here.positions)[:, kept]
                else:
                    total = total + mixer(normed, None)[0][:, kept]
            x = total if block.pointwise is None else block.pointwise(total)
            if index in self.passed:
                positions, columns = self.passed[index]
                self.known[index] = x[:, torch.searchsorted(after.positions, positions)][..., columns]
        return self.decoder.read_out(x)[:, -1]

    def _near(
        self, mixer: Mixer[Any, Any], x: Float[Tensor, "batch places width"], positions: Int[Tensor, " places"]
    ) -> Float[Tensor, "batch places width"]:
        """Windows and convolutions: each stretch of consecutive positions for itself."""
        breaks = (positions.diff() != 1).nonzero()[:, 0] + 1
        stretches = torch.tensor_split(x, breaks, dim=1)
        return torch.cat([mixer(stretch, None)[0] for stretch in stretches], dim=1)

    def _attend(
        self,
        mixer: SoftmaxAttention,
        x: Float[Tensor, "batch places width"],
        positions: Int[Tensor, " places"],
        index: int,
        base: int,
        whole: Float[Tensor, "batch time width"] | None,
    ) -> Float[Tensor, "batch places width"]:
        """Attention at `positions` over all they see, streamed: running maximum, normaliser, weighted sum.

        The sum is of the stream's columns; the value projection, being linear, is applied to it once.
        """
        spec, wide = mixer.spec, accumulator(x.dtype)
        group = spec.heads // spec.kv_heads
        batch, places, _ = x.shape
        queries = mixer.scale * mixer.query(x).to(wide).view(batch, places, spec.kv_heads, group, spec.head_dim)
        queries = queries.permute(0, 2, 1, 3, 4).reshape(batch, spec.kv_heads, places * group, spec.head_dim)
        rows = positions.repeat_interleave(group)
        maximum = torch.full((batch, spec.kv_heads, places * group), -torch.inf, dtype=wide)
        normaliser = torch.zeros_like(maximum)
        weighted = torch.zeros(*maximum.shape, self.width, dtype=wide)
        reads = columns_read(mixer.key.weight), columns_read(mixer.value.weight)
        for chunk in self._chunks(reads[0] | reads[1], index, base, whole, places * spec.heads):
            keys = _heads(chunk.project(mixer.key.weight), spec.kv_heads).to(wide)
            scores = matmul(queries, keys.transpose(2, 3))
            columns = chunk.start + torch.arange(scores.shape[-1])
            if mixer.causal and int(columns[-1]) > int(rows.min()):
                scores = scores.masked_fill(columns > rows[:, None], -torch.inf)
            new_maximum = torch.maximum(maximum, scores.amax(dim=-1))
            known = new_maximum.isfinite()
            shrink = torch.where(known, (maximum - new_maximum).exp(), 1.0)
            weights = torch.where(known[..., None], (scores - new_maximum[..., None]).exp(), 0.0)
            normaliser = shrink * normaliser + weights.sum(dim=-1)
            weighted = shrink[..., None] * weighted + chunk.weigh(weights, self.width)
            maximum = new_maximum
        value = mixer.value.weight.to(wide).view(spec.kv_heads, spec.value_dim, self.width)
        read = (weighted / normaliser[..., None]) @ value.transpose(1, 2)
        read = read.view(batch, spec.kv_heads, places, group, spec.value_dim)
        return mixer.projected_back(read.permute(0, 2, 1, 3, 4).reshape(batch, places, -1).to(x.dtype), x)

    # -- the stream, where it is demanded ----------------------------------------------------------------------------

    def _stream_at(self, positions: Int[Tensor, " places"]) -> Float[Tensor, "batch places width"]:
        return self.decoder.embed_tokens(self.tokens[:, positions]) + self.decoder.embed_positions(positions)

    def _chunks(
        self, wanted: Bool[Tensor, " width"], index: int, base: int, whole: Tensor | None, queries: int
    ) -> Iterator[Chunk]:
        """The wanted columns of the input of layer `index` at all positions, for so many queries.

        They are made from what is known at all positions: the embedding, or the input of layer `base`. No mixer in
        between writes them, or they would be known further up; position-wise maps may, and pass on at few positions
        what mixers wrote.
        """
        needs = [wanted]
        for block in reversed(self.blocks[base:index]):
            needs.append(map_demand(block.pointwise, needs[-1]))
        needs.reverse()
        pieces = self._embedding(needs[0], queries) if whole is None else self._slices(whole, needs[0], queries)
        for chunk in pieces:
            for layer, need in zip(range(base, index), needs[1:], strict=True):
                pointwise = self.blocks[layer].pointwise
                if pointwise is not None and (map_writes(pointwise, self.width) & need).any():
                    chunk = mapped(chunk, pointwise, need)
                if layer in self.known:
                    chunk = replaced(chunk, *self.passed[layer], self.known[layer])
            yield chunk

    def _slices(self, whole: Float[Tensor, "batch time width"], wanted: Tensor, queries: int) -> Iterator[Chunk]:
        """A stream that is known at all positions, in chunks."""
        columns = wanted.nonzero()[:, 0]
        for start, piece in self._pieces(whole.shape[0], len(columns), queries):
            positions = torch.zeros(1, len(piece), len(columns), dtype=whole.dtype)
            yield Chunk(start, columns, torch.arange(len(columns)), positions, whole[:, piece][..., columns])

    def _embedding(self, wanted: Bool[Tensor, " width"], queries: int) -> Iterator[Chunk]:
        """The embedding at all positions, on the wanted columns, in chunks."""
        columns = wanted.nonzero()[:, 0]
        code = self.decoder.config.tokens
        coded = [code is None or int(column) in code.columns() for column in columns]
        token_columns = torch.tensor(coded, dtype=torch.bool).nonzero()[:, 0]
        table = self._token_table(columns[token_columns])
        for start, piece in self._pieces(self.tokens.shape[0], len(columns), queries):
            positions = self.decoder.embed_positions(piece)[:, columns][None]
            tokens = self.tokens[:, piece[0] : piece[-1] + 1]
            if table is not None:
                part = torch.nn.functional.embedding(tokens, table)
            else:
                part = self.decoder.embed_tokens(tokens)[..., columns[token_columns]]
            yield Chunk(start, columns, token_columns, positions, part)

    def _pieces(self, batch: int, columns: int, queries: int) -> Iterator[tuple[int, Int[Tensor, " some"]]]:
        size = max(1, CHUNK_ELEMENTS // (batch * max(columns, queries, 1)))
        for start in range(0, self.length, size):
            yield start, self.all_positions[start : start + size]

    def _token_table(self, columns: Int[Tensor, " columns"]) -> Float[Tensor, "vocabulary columns"] | None:
        """The token part of the embedding for every token, if that is small enough to keep."""
        vocabulary = self.decoder.config.vocabulary
        if vocabulary * len(columns) > TABLE_ELEMENTS:
            return None
        key = tuple(columns.tolist())
        if key not in self.tables:
            tokens = torch.arange(vocabulary)
            parts = [self.decoder.embed_tokens(piece[None])[0][:, columns] for piece in tokens.split(2**16)]
            self.tables[key] = torch.cat(parts)
        return self.tables[key]

    def _widen(self, chunk: Chunk) -> Float[Tensor, "any time width"]:
        value = chunk.value
        x = torch.zeros(*value.shape[:2], self.width, dtype=value.dtype)
        x[..., chunk.columns] = value
        return x


def _heads(x: Float[Tensor, "batch time inner"], heads: int) -> Float[Tensor, "batch heads time dim"]:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)
