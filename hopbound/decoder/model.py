r"""The decoder: embedding, layers of mixers with position-wise maps between them, a readout.

    x_t^0 = token(w_t) + position(t)
    h_t   = x_t^l + Σ_{mixers of layer l} mixer(norm(x^l))_t          (mixers of one layer stand in parallel)
    x_t^{l+1} = h_t + W_2 a(W_1 norm(h_t) + b_1) + b_2
    logits_t  = readout(norm(x_t^L))

This is the model class of arXiv 2602.01763, Section 2 (see docs/theory.md): a causal stack with position-wise maps.
Two uses share it. *Built* models have codes by rule, no norm and hand-made weights; *trained* or random ones have
tables, RMS norm and 1/√d scores.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hopbound.architecture import Architecture, Precisions, parse_schedule
from hopbound.decoder.codes import PositionCode, ReadoutCode, TokenCode, exactly, listed, whole
from hopbound.errors import InputError, RejectedError
from hopbound.mixers import Mixer, make_mixer

MAX_SYMBOLS = 2**26  # tokens or answers of a model that is read from a file: a row of logits must fit into memory
ACTIVATIONS = {"relu": torch.relu, "gelu": nn.functional.gelu, "silu": nn.functional.silu}
NORMS = ("none", "rms")
SCORE_SCALES: dict[str, float | None] = {"one": 1.0, "rsqrt": None}


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """Everything that fixes a decoder but its weights; `model.json` is this and nothing hidden.

    Attributes:
        schedule: in the grammar, all sizes written out.
        precisions: bits an element, for the sizes that the schedule's claims count.
        vocabulary: number of tokens.
        answers: number of logits.
        width: of the residual stream.
        hidden: units of the position-wise map after each layer; 0: no map.
        activation: of the maps.
        norm: before mixers, maps and readout.
        scores: scale of softmax scores: 1, or 1/√d_k.
        tokens: token code, or None for a table.
        positions: position code, a number of learned positions, or None for no positions.
        readout: readout code, or None for a table.
    """

    schedule: str
    precisions: Precisions
    vocabulary: int
    answers: int
    width: int
    hidden: tuple[int, ...]
    activation: Literal["relu", "gelu", "silu"]
    norm: Literal["none", "rms"]
    scores: Literal["one", "rsqrt"]
    tokens: TokenCode | None
    positions: PositionCode | int | None
    readout: ReadoutCode | None

    @property
    def architecture(self) -> Architecture:
        """The stack."""
        return parse_schedule(self.schedule, precisions=self.precisions)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        positions = self.positions.to_json() if isinstance(self.positions, PositionCode) else self.positions
        return {
            "schedule": self.schedule,
            "precisions": asdict(self.precisions),
            "vocabulary": self.vocabulary,
            "answers": self.answers,
            "width": self.width,
            "hidden": list(self.hidden),
            "activation": self.activation,
            "norm": self.norm,
            "scores": self.scores,
            "tokens": self.tokens.to_json() if self.tokens else None,
            "positions": positions,
            "readout": self.readout.to_json() if self.readout else None,
        }

    @classmethod
    def from_json(cls, value: object) -> "DecoderConfig":
        """From `to_json`.

        Raises:
            RejectedError: missing, unknown or ill-typed fields.
        """
        try:
            return cls._from_json(value)
        except (RejectedError, InputError) as error:
            raise RejectedError(f"model config: {error}") from error

    @classmethod
    def _from_json(cls, value: object) -> "DecoderConfig":
        keys = [field.name for field in fields(cls)]
        given = exactly(value, "model config", keys)
        for key, allowed in (("activation", ACTIVATIONS), ("scores", SCORE_SCALES), ("norm", NORMS)):
            if given[key] not in allowed:
                raise RejectedError(f"{key}: {given[key]!r}, expected one of {', '.join(allowed)}")
        kinds = ("activation", "kv", "state", "summary")
        bits = exactly(given["precisions"], "precisions", kinds)
        width = whole(given["width"], "width", 1)
        positions = given["positions"]
        if isinstance(positions, dict):
            positions = PositionCode.from_json(positions, width)
        elif positions is not None:
            positions = whole(positions, "positions", 1)
        config = cls(
            schedule=str(given["schedule"]),
            precisions=Precisions(**{kind: whole(bits[kind], f"{kind} bits", 1) for kind in kinds}),
            vocabulary=whole(given["vocabulary"], "vocabulary", 1, MAX_SYMBOLS),
            answers=whole(given["answers"], "answers", 1, MAX_SYMBOLS),
            width=width,
            hidden=tuple(whole(units, "hidden", 0) for units in listed(given["hidden"], "hidden")),
            activation=given["activation"],
            norm=given["norm"],
            scores=given["scores"],
            tokens=None if given["tokens"] is None else TokenCode.from_json(given["tokens"], width),
            positions=positions,
            readout=None if given["readout"] is None else ReadoutCode.from_json(given["readout"], width),
        )
        if len(config.hidden) != len(config.architecture.layers):
            raise RejectedError(f"hidden: {len(config.hidden)} numbers, expected one for each layer")
        return config


class PointwiseMap(nn.Module):
    """A map of each position for itself: h + W_2 a(W_1 norm(h) + b_1) + b_2."""

    def __init__(self, width: int, hidden: int, activation: str, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.activation = ACTIVATIONS[activation]
        self.rise = nn.Linear(width, hidden)
        self.fall = nn.Linear(hidden, width)

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """The map, added to what it reads."""
        return x + self.fall(self.activation(self.rise(self.norm(x))))


class Block(nn.Module):
    """One layer: its mixers in parallel, then its position-wise map (or none)."""

    def __init__(self, mixers: Sequence[Mixer[Any, Any]], norm: nn.Module, pointwise: PointwiseMap | None) -> None:
        super().__init__()
        self.norm = norm
        self.mixers = nn.ModuleList(mixers)
        self.pointwise = pointwise

    def each_mixer(self) -> list[Mixer[Any, Any]]:
        """The mixers, typed."""
        return [mixer for mixer in self.mixers if isinstance(mixer, Mixer)]

    def forward(
        self, x: Float[Tensor, "batch time width"], states: Sequence[Any] | None
    ) -> tuple[Float[Tensor, "batch time width"], list[Any]]:
        """Mix, then map."""
        mixers = self.each_mixer()
        normed = self.norm(x)
        after = []
        for mixer, state in zip(mixers, states or [None] * len(mixers), strict=True):
            moved, state = mixer(normed, state)
            x = x + moved
            after.append(state)
        return (x if self.pointwise is None else self.pointwise(x)), after


@dataclass(frozen=True)
class DecoderState:
    """What the tokens so far left behind: how many they were, and each mixer's state, layer by layer."""

    seen: int
    layers: list[list[Any]]


class Decoder(nn.Module):
    """A causal stack of layers over a residual stream."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        architecture = config.architecture
        if len(config.hidden) != len(architecture.layers):
            raise InputError("hidden", config.hidden, f"one number for each of {len(architecture.layers)} layers")
        self.config = config
        scale = SCORE_SCALES[config.scores]

        def norm() -> nn.Module:
            return nn.RMSNorm(config.width) if config.norm == "rms" else nn.Identity()

        self.token_table = None if config.tokens else nn.Embedding(config.vocabulary, config.width)
        learned = config.positions if isinstance(config.positions, int) else None
        self.position_table = None if learned is None else nn.Embedding(learned, config.width)
        blocks = []
        for layer, hidden in zip(architecture.layers, config.hidden, strict=True):
            mixers = [make_mixer(spec, config.width, scale) for spec in layer.mixers if spec.name != "mlp"]
            pointwise = PointwiseMap(config.width, hidden, config.activation, norm()) if hidden else None
            blocks.append(Block(mixers, norm(), pointwise))
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = norm()
        self.readout_table = None if config.readout else nn.Linear(config.width, config.answers, bias=False)

    @classmethod
    def zeros(cls, config: DecoderConfig) -> "Decoder":
        """A decoder whose parameters are all zero, to be written by hand; no generator is touched."""
        with torch.device("meta"):
            decoder = cls(config)
        decoder.to_empty(device="cpu")
        with torch.no_grad():
            for parameter in decoder.parameters():
                parameter.zero_()
        return decoder

    @classmethod
    def random(cls, config: DecoderConfig, seed: int) -> "Decoder":
        """A decoder with seeded random weights; the same seed gives the same weights, no global generator is touched.

        Any whole number is a seed: the generator's own is made from it and from what it is for.
        Matrices are normal with variance 1/inputs, norms 1, biases 0, convolution taps normal with variance 1/taps.
        """
        decoder = cls.zeros(config)
        derived = hashlib.sha256(f"hopbound decoder weights {seed}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(derived[:8], "little"))
        with torch.no_grad():
            for name, parameter in decoder.named_parameters():
                if name.endswith("norm.weight"):
                    parameter.fill_(1.0)
                elif parameter.ndim == 2:
                    table = name in ("token_table.weight", "position_table.weight")
                    inputs = 1 if table else parameter.shape[0 if name.endswith("filter") else 1]
                    parameter.normal_(0.0, inputs**-0.5, generator=generator)
        return decoder.eval().requires_grad_(False)

    def each_block(self) -> list[Block]:
        """The layers, typed."""
        return [block for block in self.blocks if isinstance(block, Block)]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights and of the stream."""
        return next(self.parameters()).dtype

    @property
    def prompt_limit(self) -> float:
        """The longest prompt that its positions are coded for."""
        code = self.config.positions
        return code.length if isinstance(code, PositionCode) else inf if code is None else code

    def _check_length(self, length: int) -> None:
        if length > self.prompt_limit:
            raise InputError("prompt length", length, f"at most {self.prompt_limit} tokens for this model")

    def embed_tokens(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        """The token's part of the embedding."""
        if self.config.tokens is not None:
            return self.config.tokens.encode(tokens, self.config.width, self.dtype)
        assert self.token_table is not None
        return self.token_table(tokens)

    def embed_positions(self, positions: Int[Tensor, " time"]) -> Float[Tensor, "time width"]:
        """The position's part of the embedding.

        Raises:
            InputError: the rule or the table does not reach so far.
        """
        code = self.config.positions
        if len(positions):
            self._check_length(int(positions.max()) + 1)
        if isinstance(code, PositionCode):
            return code.encode(positions, self.config.width, self.dtype)
        if self.position_table is not None:
            return self.position_table(positions)
        return torch.zeros(len(positions), self.config.width, dtype=self.dtype, device=positions.device)

    def read_out(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time answers"]:
        """Logits, in float32 at least."""
        x = self.final_norm(x)
        if self.config.readout is not None:
            return self.config.readout.logits(x, self.config.answers)
        assert self.readout_table is not None
        return self.readout_table(x).to(torch.promote_types(x.dtype, torch.float32))

    def forward(
        self, tokens: Int[Tensor, "batch time"], state: DecoderState | None = None
    ) -> tuple[Float[Tensor, "batch time answers"], DecoderState]:
        """Logits at every token, and the state after the last: whole sequence, split, or one token at a time."""
        seen = state.seen if state else 0
        positions = torch.arange(seen, seen + tokens.shape[1], device=tokens.device)
        x = self.embed_tokens(tokens) + self.embed_positions(positions)
        after = []
        for index, block in enumerate(self.each_block()):
            x, layer_state = block(x, state.layers[index] if state else None)
            after.append(layer_state)
        return self.read_out(x), DecoderState(seen + tokens.shape[1], after)

    @torch.no_grad()
    def final_logits(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch answers"]:
        """Logits at the last token, evaluated on demand: only what they depend on is computed."""
        from hopbound.decoder.demand import demand_logits

        return demand_logits(self, tokens)

    def answer(self, prompts: np.ndarray) -> np.ndarray:
        """The answer with the largest logit at the last token of each prompt (an `Answerer`).

        Args:
            prompts: int64 [N, n].

        Returns:
            int64 [N].

        Raises:
            InputError: the prompts are too long for this model or hold a token that it does not know.
        """
        return np.concatenate([logits.argmax(dim=-1).numpy() for logits in self.logits_of(prompts)])

    def logits_of(self, prompts: np.ndarray) -> Iterator[Float[Tensor, "batch answers"]]:
        """Final logits of the prompts (int64 [N, n]), in batches of a size that fits into memory.

        Raises:
            InputError: as `answer`.
        """
        from hopbound.decoder.demand import examples_at_once

        known = self.config.vocabulary
        if prompts.size and not 0 <= int(prompts.min()) <= int(prompts.max()) < known:
            raise InputError("tokens", f"{prompts.min()} to {prompts.max()}", f"numbers from 0 to {known - 1}")
        self._check_length(prompts.shape[1])
        tokens = torch.from_numpy(prompts)
        for batch in tokens.split(examples_at_once(self, tokens[:1])):
            yield self.final_logits(batch)
