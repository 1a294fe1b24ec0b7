r"""The decoder: embedding, layers of mixers with position-wise maps between them, a readout.

    x_t^0 = token(w_t) + position(t)
    h_t   = x_t^l + Σ_{mixers of layer l} mixer(norm(x^l))_t          (mixers of one layer stand in parallel)
    x_t^{l+1} = h_t + W_2 a(W_1 norm(h_t) + b_1) + b_2
    logits_t  = readout(norm(x_t^L))

This is the model class of arXiv 2602.01763, Section 2 (see docs/theory.md): a causal stack with position-wise maps.
Two uses share it. *Built* models have codes by rule, no norm and hand-made weights; *trained* or random ones have
tables, RMS norm and 1/√d scores (`Decoder.from_schedule`). A map can be gated, h + W_2 (a(W_g n) ⊙ (W_1 n + b_1)) + b_2
with n = norm(h); with silu this is SwiGLU (arXiv 2002.05202). Layers can share one set of weights, as the attention
blocks of Zamba2.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hopbound.architecture import Architecture, Defaults, Precisions, mixer_parameters, parse_schedule
from hopbound.decoder.codes import PositionCode, ReadoutCode, TokenCode, exactly, listed, whole
from hopbound.errors import InputError, RejectedError
from hopbound.mixers import Alibi, Encoding, Mixer, Rotary, SoftmaxAttention, make_mixer
from hopbound.mixers.mixer import state_tensors, unpacked
from hopbound.mixers.positions import encoding_to_json

MAX_SYMBOLS = 2**26  # tokens or answers of a model that is read from a file: a row of logits must fit into memory
MAX_THOUGHTS = 2**16  # tokens that a model that is read from a file generates for each prompt
ACTIVATIONS = {"relu": torch.relu, "gelu": nn.functional.gelu, "silu": nn.functional.silu}
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "none": lambda width: nn.Identity(),
    "rms": nn.RMSNorm,
    "layer": nn.LayerNorm,
}
MAPS = ("plain", "gated")
SCORE_SCALES: dict[str, float | None] = {"one": 1.0, "rsqrt": None}
CHOICES = {"activation": ACTIVATIONS, "scores": SCORE_SCALES, "norm": NORMS, "maps": MAPS}
BIDIRECTIONAL = ("full", "mlp")  # mixers that an encoder may have
LATER_FIELDS: dict[str, object] = {"thoughts": 0, "causal": True}  # and what files from before they existed meant
ENCODINGS: dict[str, Encoding] = {"none": None, "rotary": Rotary(), "alibi": Alibi()}


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
        maps: plain, or gated.
        norm: before mixers, maps and readout.
        scores: scale of softmax scores: 1, or 1/√d_k.
        tokens: token code, or None for a table.
        positions: position code, a number of learned positions, or None for no positions.
        encoding: of positions inside softmax attention, or None.
        shared: for each layer the one whose weights it uses, itself or an earlier one; None: each its own.
        readout: readout code, or None for a table.
        thoughts: tokens that the model itself appends to a prompt, each its own answer, before its answer is read.
        causal: whether a token sees those before it alone; False: an encoder of full attention, all tokens see all.
    """

    schedule: str
    precisions: Precisions
    vocabulary: int
    answers: int
    width: int
    hidden: tuple[int, ...]
    activation: Literal["relu", "gelu", "silu"]
    norm: Literal["none", "rms", "layer"]
    scores: Literal["one", "rsqrt"]
    tokens: TokenCode | None
    positions: PositionCode | int | None
    readout: ReadoutCode | None
    maps: Literal["plain", "gated"] = "plain"
    encoding: Encoding = None
    shared: tuple[int, ...] | None = None
    thoughts: int = 0
    causal: bool = True

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if (value := getattr(self, name)) not in tuple(allowed):
                raise InputError(name, value, f"one of {', '.join(allowed)}")
        layers = self.architecture.layers
        if len(self.hidden) != len(layers):
            raise InputError("hidden", self.hidden, f"one number for each of {len(layers)} layers")
        shared = self.shared or ()
        if self.shared is not None and len(shared) != len(layers):
            raise InputError("shared", shared, f"one number for each of {len(layers)} layers")
        for index, other in enumerate(shared):
            if not 0 <= other <= index or shared[other] != other:
                raise InputError(
                    "shared", shared, f"for layer {index} itself, or an earlier layer with its own weights"
                )
            if layers[other] != layers[index] or self.hidden[other] != self.hidden[index]:
                raise InputError("shared", shared, f"layers {other} and {index} with the same mixers and hidden units")
        self._check_reading()

    def _check_reading(self) -> None:
        """Refuse generated tokens that are no tokens, and what cannot do without the order of tokens."""
        if self.thoughts < 0 or (self.thoughts and self.answers > self.vocabulary):
            expected = "0, or more where every answer is a token (answers at most vocabulary)"
            raise InputError("thoughts", self.thoughts, expected)
        if self.causal:
            return
        if self.thoughts:
            raise InputError("thoughts", self.thoughts, "0 for an encoder: it generates no tokens")
        if isinstance(self.encoding, Alibi):
            raise InputError("encoding", "alibi", "none or rotary for an encoder")
        for spec in (spec for layer in self.architecture.layers for spec in layer.mixers):
            if spec.name not in BIDIRECTIONAL:
                raise InputError("causal", False, f"True: {spec.name} cannot see what comes after, only full can")

    @property
    def own_layers(self) -> tuple[int, ...]:
        """The layers that have weights of their own."""
        return tuple(range(len(self.hidden))) if self.shared is None else tuple(sorted(set(self.shared)))

    @property
    def parameters(self) -> int:
        """How many parameters the decoder has, shared ones once."""
        norm = {"none": 0, "rms": self.width, "layer": 2 * self.width}[self.norm]
        layers = self.architecture.layers
        tables = (self.tokens is None) * self.vocabulary + (self.readout is None) * self.answers
        count = norm + self.width * (tables + (self.positions if isinstance(self.positions, int) else 0))
        for index in self.own_layers:
            count += norm + sum(mixer_parameters(spec, self.width) for spec in layers[index].mixers)
            if hidden := self.hidden[index]:
                rising = 2 if self.maps == "gated" else 1
                count += norm + hidden * ((1 + rising) * self.width + 1) + self.width
        return count

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
            "maps": self.maps,
            "encoding": encoding_to_json(self.encoding),
            "shared": None if self.shared is None else list(self.shared),
            "thoughts": self.thoughts,
            "causal": self.causal,
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
        given = exactly(LATER_FIELDS | value if isinstance(value, dict) else value, "model config", keys)
        for key, allowed in CHOICES.items():
            if given[key] not in tuple(allowed):
                raise RejectedError(f"{key}: {given[key]!r}, expected one of {', '.join(allowed)}")
        kinds = ("activation", "kv", "state", "summary")
        bits = exactly(given["precisions"], "precisions", kinds)
        width = whole(given["width"], "width", 1)
        positions = given["positions"]
        if isinstance(positions, dict):
            positions = PositionCode.from_json(positions, width)
        elif positions is not None:
            positions = whole(positions, "positions", 1)
        shared = given["shared"]
        if not isinstance(given["causal"], bool):
            raise RejectedError(f"causal: {given['causal']!r}, expected true or false")
        return cls(
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
            maps=given["maps"],
            encoding=_encoding(given["encoding"]),
            shared=None if shared is None else tuple(whole(layer, "shared", 0) for layer in listed(shared, "shared")),
            thoughts=whole(given["thoughts"], "thoughts", 0, MAX_THOUGHTS),
            causal=given["causal"],
        )


def _encoding(value: object) -> Encoding:
    """From `encoding_to_json`."""
    if value is None:
        return None
    kind = value.get("kind") if isinstance(value, dict) else value
    if kind == "alibi":
        exactly(value, "encoding", ["kind"])
        return Alibi()
    if kind != "rotary":
        raise RejectedError(f"encoding: {kind!r}, expected rotary or alibi")
    given = exactly(value, "encoding", ["kind", "base", "dims"])
    base, dims = given["base"], given["dims"]
    if not isinstance(base, float | int) or isinstance(base, bool) or not 1 < base < inf:
        raise RejectedError(f"base: {base!r}, expected a number above 1")
    return Rotary(float(base), None if dims is None else whole(dims, "dims", 2))


class PointwiseMap(nn.Module):
    """A map of each position for itself: h + W_2 a(W_1 norm(h) + b_1) + b_2, or gated."""

    def __init__(self, width: int, hidden: int, activation: str, norm: nn.Module, *, gated: bool) -> None:
        super().__init__()
        self.norm = norm
        self.activation = ACTIVATIONS[activation]
        self.rise = nn.Linear(width, hidden)
        self.gate = nn.Linear(width, hidden, bias=False) if gated else None
        self.fall = nn.Linear(hidden, width)

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """The map, added to what it reads."""
        normed = self.norm(x)
        risen = self.rise(normed)
        hidden = self.activation(risen) if self.gate is None else self.activation(self.gate(normed)) * risen
        return x + self.fall(hidden)

    def reads(self, units: Bool[Tensor, " hidden"]) -> Bool[Tensor, " width"]:
        """The columns that hidden units read."""
        weights = [self.rise.weight] if self.gate is None else [self.rise.weight, self.gate.weight]
        return torch.stack([weight[units].ne(0).any(dim=0) for weight in weights]).any(dim=0)

    def hidden(
        self, x: Float[Tensor, "*some columns"], columns: Int[Tensor, " columns"], units: Bool[Tensor, " hidden"]
    ) -> Float[Tensor, "*some units"]:
        """Hidden units, from those columns of the stream that they read, without a norm."""
        risen = x @ self.rise.weight[units][:, columns].T + self.rise.bias[units]
        if self.gate is None:
            return self.activation(risen)
        return self.activation(x @ self.gate.weight[units][:, columns].T) * risen


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
        self,
        x: Float[Tensor, "batch time width"],
        states: Sequence[Any] | None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time width"], list[Any]]:
        """Mix, then map."""
        mixers = self.each_mixer()
        normed = self.norm(x)
        after = []
        for mixer, state in zip(mixers, states or [None] * len(mixers), strict=True):
            moved, state = mixer(normed, state, mask)
            x = x + moved
            after.append(state)
        return (x if self.pointwise is None else self.pointwise(x)), after


@dataclass(frozen=True)
class DecoderState:
    """What the tokens so far left behind.

    Attributes:
        seen: how many tokens that count there were, in each example or in all alike.
        layers: each mixer's state, layer by layer.
    """

    seen: Int[Tensor, " batch"] | int
    layers: list[list[Any]]


class Decoder(nn.Module):
    """A causal stack of layers over a residual stream."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        layers = config.architecture.layers
        self.config = config
        scale = SCORE_SCALES[config.scores]

        def norm() -> nn.Module:
            return NORMS[config.norm](config.width)

        self.token_table = None if config.tokens else nn.Embedding(config.vocabulary, config.width)
        learned = config.positions if isinstance(config.positions, int) else None
        self.position_table = None if learned is None else nn.Embedding(learned, config.width)
        blocks = []
        for index in config.own_layers:
            specs, hidden = layers[index].mixers, config.hidden[index]
            mixers = [make_mixer(spec, config.width, scale, config.encoding) for spec in specs if spec.name != "mlp"]
            for mixer in mixers:
                if isinstance(mixer, SoftmaxAttention):
                    mixer.causal = config.causal
            gated, activation = config.maps == "gated", config.activation
            pointwise = PointwiseMap(config.width, hidden, activation, norm(), gated=gated) if hidden else None
            blocks.append(Block(mixers, norm(), pointwise))
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = norm()
        self.readout_table = None if config.readout else nn.Linear(config.width, config.answers, bias=False)

    @classmethod
    def from_schedule(
        cls,
        schedule: str,
        *,
        vocabulary: int,
        width: int = 64,
        heads: int = 4,
        head_dim: int = 16,
        answers: int | None = None,
        hidden: int | None = None,
        maps: Literal["plain", "gated"] = "gated",
        activation: Literal["relu", "gelu", "silu"] = "silu",
        norm: Literal["none", "rms", "layer"] = "rms",
        positions: str | int = "none",
        shared: Sequence[int] | None = None,
        defaults: Defaults | None = None,
        precisions: Precisions | None = None,
        seed: int = 0,
    ) -> "Decoder":
        """A decoder with seeded random weights for a schedule of the grammar, ready to be trained.

        ```python
        decoder = Decoder.from_schedule("6*(3*gdn full)", vocabulary=512, width=128, positions="rotary")
        logits, state = decoder(tokens)
        ```

        Args:
            schedule: in the grammar; what it leaves open comes from `heads`, `head_dim` and `defaults`.
            vocabulary: number of tokens.
            width: of the residual stream.
            heads: of mixers that do not say.
            head_dim: of mixers that do not say.
            answers: number of logits; None: one a token of the vocabulary.
            hidden: units of each position-wise map, 0: no maps; None: 4 width, gated 8/3 width. They stand after every
                layer, or, where the schedule writes `mlp` layers, there alone.
            maps: gated (with silu: SwiGLU), or plain.
            activation: of the maps.
            norm: before mixers, maps and readout: root mean square, layer norm, or none.
            positions: `rotary` or `alibi` inside softmax attention, a number of learned positions, or `none`.
            shared: for each layer the one whose weights it uses; None: each its own.
            defaults: for what else the schedule leaves open (window, kernel); its heads and head_dim are not used.
            precisions: bits an element, for the sizes that claims count.
            seed: of the weights.

        Raises:
            InputError: a mixer cannot be run, or a number is out of range.
        """
        given = replace(defaults or Defaults(), heads=heads, head_dim=head_dim)
        architecture = parse_schedule(schedule, given, precisions or Precisions())
        for name, number in (("vocabulary", vocabulary), ("width", width), ("hidden", hidden or 1)):
            if number < 1:
                raise InputError(name, number, "a whole number from 1 on")
        units = (8 * width // 3 if maps == "gated" else 4 * width) if hidden is None else hidden
        written = [any(spec.name == "mlp" for spec in layer.mixers) for layer in architecture.layers]
        learned = positions if isinstance(positions, int) else None
        if positions not in (*ENCODINGS, learned) or (learned is not None and learned < 1):
            raise InputError("positions", positions, f"one of {', '.join(ENCODINGS)}, or a number from 1 on")
        config = DecoderConfig(
            schedule=str(architecture),
            precisions=architecture.precisions,
            vocabulary=vocabulary,
            answers=vocabulary if answers is None else answers,
            width=width,
            hidden=tuple(units if here or not any(written) else 0 for here in written),
            activation=activation,
            maps=maps,
            norm=norm,
            scores="rsqrt",
            tokens=None,
            positions=learned,
            encoding=None if isinstance(positions, int) else ENCODINGS[positions],
            shared=None if shared is None else tuple(shared),
            readout=None,
        )
        return cls.random(config, seed).train().requires_grad_(True)

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
        Matrices are normal with variance 1/inputs, norms 1, biases 0, convolution taps normal with variance 1/taps;
        rates and the like start as their mixers say (`Mixer.constants`).
        """
        decoder = cls.zeros(config)
        derived = hashlib.sha256(f"hopbound decoder weights {seed}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(derived[:8], "little"))
        mixers = [(name, module) for name, module in decoder.named_modules() if isinstance(module, Mixer)]
        constants = {f"{name}.{key}" for name, mixer in mixers for key in mixer.constants()}
        for _, mixer in mixers:
            mixer.start()
        with torch.no_grad():
            for name, parameter in decoder.named_parameters():
                if name in constants:
                    continue
                if name.endswith("norm.weight"):  # a layer norm's bias stays 0
                    parameter.fill_(1.0)
                elif parameter.ndim == 2:
                    table = name in ("token_table.weight", "position_table.weight")
                    inputs = 1 if table else parameter.shape[0 if name.endswith("filter") else 1]
                    parameter.normal_(0.0, inputs**-0.5, generator=generator)
        return decoder.eval().requires_grad_(False)

    def each_block(self) -> list[Block]:
        """The layers, typed; one that shares its weights stands at each of its places."""
        blocks = [block for block in self.blocks if isinstance(block, Block)]
        own = self.config.own_layers
        return [blocks[own.index(index)] for index in self.config.shared or own]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights and of the stream."""
        return next(self.parameters()).dtype

    @property
    def prompt_limit(self) -> float:
        """The longest prompt that its positions are coded for, beside the tokens that it generates itself."""
        return self._position_limit - self.config.thoughts

    @property
    def _position_limit(self) -> float:
        code = self.config.positions
        return code.length if isinstance(code, PositionCode) else inf if code is None else code

    def _check_length(self, length: int) -> None:
        if length > self._position_limit:
            raise InputError("prompt length", length, f"at most {self._position_limit} tokens for this model")

    def embed_tokens(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        """The token's part of the embedding."""
        if self.config.tokens is not None:
            return self.config.tokens.encode(tokens, self.config.width, self.dtype)
        assert self.token_table is not None
        return self.token_table(tokens)

    def embed_positions(self, positions: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape width"]:
        """The position's part of the embedding.

        Raises:
            InputError: the rule or the table does not reach so far.
        """
        code = self.config.positions
        # Without a code any position will do; compiled, `forward` checks what is known without the data.
        if code is not None and positions.numel() and not torch.compiler.is_compiling():
            self._check_length(int(positions.max()) + 1)
        if isinstance(code, PositionCode):
            return code.encode(positions.flatten(), self.config.width, self.dtype).unflatten(0, positions.shape)
        if self.position_table is not None:
            return self.position_table(positions)
        return torch.zeros(*positions.shape, self.config.width, dtype=self.dtype, device=positions.device)

    def read_out(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time answers"]:
        """Logits, in float32 at least."""
        x = self.final_norm(x)
        if self.config.readout is not None:
            return self.config.readout.logits(x, self.config.answers)
        assert self.readout_table is not None
        return self.readout_table(x).to(torch.promote_types(x.dtype, torch.float32))

    def forward(
        self,
        tokens: Int[Tensor, "batch time"],
        state: DecoderState | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time answers"], DecoderState]:
        """Logits at every token, and the state after the last: whole sequence, split, or one token at a time.

        Args:
            tokens: the next ones.
            state: after those before them; None: there are none.
            mask: True for tokens that count; the others, wherever they stand, are as if they were not there, and what
                is computed at them means nothing. None: all count.

        Raises:
            InputError: the positions do not reach so far, or an encoder is given a state.
        """
        x, after = self.stream(tokens, state, mask)
        return self.read_out(x), after

    def stream(
        self,
        tokens: Int[Tensor, "batch time"],
        state: DecoderState | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> tuple[Float[Tensor, "batch time width"], DecoderState]:
        """The residual stream that `forward` reads the logits from, and the state; arguments as there."""
        if state is not None and not self.config.causal:
            raise InputError("state", "given", "none: an encoder reads a sequence as a whole")
        seen, time = state.seen if state else 0, tokens.shape[1]
        if mask is None:
            steps, after = torch.arange(time, device=tokens.device), seen + time
            if isinstance(after, int):
                self._check_length(after)
        else:
            steps, after = (mask.cumsum(dim=1) - 1).clamp(min=0), seen + mask.sum(dim=1)
        start = seen[:, None] if isinstance(seen, Tensor) else seen
        x = self.embed_tokens(tokens) + self.embed_positions(start + steps)
        layers = []
        for index, block in enumerate(self.each_block()):
            x, layer_state = block(x, state.layers[index] if state else None, mask)
            layers.append(layer_state)
        return x, DecoderState(after, layers)

    def packed(
        self, tokens: Int[Tensor, "1 total"], cu_seqlens: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "1 total answers"]:
        """Logits for several sequences laid end to end, none of which sees another; as `Mixer.packed`.

        Raises:
            InputError: `cu_seqlens` does not run from 0 to the total without falling.
        """
        padded, mask = unpacked(tokens, cu_seqlens)
        return self(padded, None, mask)[0][mask][None]

    @staticmethod
    def state_bytes(state: DecoderState) -> int:
        """Bytes that the tensors of a state hold for one sequence; how many tokens there were is not counted."""
        tensors = (tensor for layer in state.layers for held in layer for tensor in state_tensors(held))
        return sum(tensor[0].numel() * tensor.element_size() for tensor in tensors if tensor.is_floating_point())

    @torch.no_grad()
    def final_logits(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch answers"]:
        """Logits at the last token given, evaluated on demand: only what they depend on is computed."""
        from hopbound.decoder.demand import demand_logits

        return demand_logits(self, tokens)

    def answer(self, prompts: np.ndarray) -> np.ndarray:
        """The answer with the largest logit at the last token of each prompt (an `Answerer`).

        A model that thinks (`DecoderConfig.thoughts`) appends its own tokens first.

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

        A model that thinks appends its own tokens first; these are the logits at the last of them.

        Raises:
            InputError: as `answer`.
        """
        from hopbound.decoder.demand import examples_at_once
        from hopbound.decoder.thoughts import think

        known = self.config.vocabulary
        if prompts.size and not 0 <= int(prompts.min()) <= int(prompts.max()) < known:
            raise InputError("tokens", f"{prompts.min()} to {prompts.max()}", f"numbers from 0 to {known - 1}")
        if prompts.shape[1] > self.prompt_limit:
            raise InputError("prompt length", prompts.shape[1], f"at most {self.prompt_limit} tokens for this model")
        tokens = torch.from_numpy(prompts)
        for batch in tokens.split(examples_at_once(self, tokens[:1])):
            yield think(self, batch)[1]
