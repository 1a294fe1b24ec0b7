"""Layers with a state of fixed size, and those with none."""

from dataclasses import dataclass
from typing import ClassVar

from hopbound.architecture.mixer import Elements, Kind, MixerSpec

MAX_LEVELS = 64  # of log-linear attention, for the length that they suffice for; more of them are as good


@dataclass(frozen=True, kw_only=True)
class MatrixState(MixerSpec):
    """A matrix of `features` × `value_dim` for each head, written and read by every token.

    Attributes:
        heads: heads H, each with a state of its own.
        key_heads: heads of queries and keys, a divisor of H; those of a group of H / key_heads heads are the same.
        head_dim: key dimension d_k of a head.
        features: rows of the matrix: d_k itself, or the dimension of its feature map.
        value_dim: columns of the matrix, d_v.
        normaliser: 1 if a vector of `features` is kept beside the matrix, as in linear attention.
        scalars: further scalars a head (the running maximum of mLSTM).
        levels: how many such states are kept (log-linear attention: one a level); 1 otherwise.
        conv: width of the short convolution over queries, keys and values; 0 if there is none.
        beta: the largest strength of a write by the delta rule.
        steps: how many keys and values a token writes one after the other (DeltaProduct).
    """

    kind: ClassVar[Kind] = Kind.BOUNDED

    heads: int
    key_heads: int
    head_dim: int
    features: int
    value_dim: int
    conv: int
    levels: int
    normaliser: int
    scalars: int
    beta: int
    steps: int

    @property
    def width(self) -> int:
        """Heads times the larger of key and value dimension."""
        return self.heads * max(self.head_dim, self.value_dim)

    @property
    def elements(self) -> Elements:
        """The state matrices with their normalisers; log-linear attention has levels for prompts up to a length."""
        keys = self.key_heads * self.head_dim
        one = self.features * self.value_dim + self.normaliser * self.features + self.scalars
        return Elements(
            state=self.levels * self.heads * one,
            conv=max(self.conv - 1, 0) * (keys * (1 + self.steps) + self.heads * self.value_dim * self.steps),
            length_limit=2 ** (min(self.levels, MAX_LEVELS) - 1) if self.name == "loglinear" else None,
        )


@dataclass(frozen=True, kw_only=True)
class GroupedState(MixerSpec):
    """Mamba-2 (arXiv 2405.21060): `state` numbers for each channel of a head, B and C shared by `groups`."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    heads: int
    head_dim: int
    state: int
    groups: int
    conv: int

    @property
    def width(self) -> int:
        """Heads times channels a head."""
        return self.heads * self.head_dim

    @property
    def elements(self) -> Elements:
        """H d_head N, and the columns of the convolution over x, B and C."""
        return Elements(
            state=self.heads * self.head_dim * self.state,
            conv=max(self.conv - 1, 0) * (self.heads * self.head_dim + 2 * self.groups * self.state),
        )


@dataclass(frozen=True, kw_only=True)
class ChannelState(MixerSpec):
    """`state` numbers a channel: Mamba (arXiv 2312.00752), RG-LRU (one), RWKV-4 (numerator, denominator, maximum)."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    channels: int
    state: int
    conv: int

    @property
    def width(self) -> int:
        """The channels."""
        return self.channels

    @property
    def elements(self) -> Elements:
        """`state` numbers a channel, and the columns of the convolution."""
        return Elements(state=self.channels * self.state, conv=max(self.conv - 1, 0) * self.channels)


@dataclass(frozen=True, kw_only=True)
class OpenState(MixerSpec):
    """A recurrence of which only the sizes are given: all that the theorems ask of a bounded layer.

    Attributes:
        state: numbers of recurrent state.
        columns: numbers that convolutions and token shifts keep.
        channels: heads times head dimension.
    """

    kind: ClassVar[Kind] = Kind.BOUNDED

    state: int
    columns: int
    channels: int

    @property
    def width(self) -> int:
        """The channels."""
        return self.channels

    @property
    def elements(self) -> Elements:
        """As given."""
        return Elements(state=self.state, conv=self.columns)


@dataclass(frozen=True, kw_only=True)
class Columns(MixerSpec):
    """The last `kernel` - 1 columns of `channels`: a causal convolution, or a token shift (`kernel` = 2)."""

    kind: ClassVar[Kind] = Kind.BOUNDED

    channels: int
    kernel: int

    @property
    def width(self) -> int:
        """The channels."""
        return self.channels

    @property
    def elements(self) -> Elements:
        """(k - 1) columns."""
        return Elements(conv=(self.kernel - 1) * self.channels)


@dataclass(frozen=True, kw_only=True)
class Pointwise(MixerSpec):
    """A layer that moves nothing between positions; it has no size that matters here."""

    kind: ClassVar[Kind] = Kind.POINTWISE

    @property
    def width(self) -> int:
        """None: nothing crosses positions."""
        return 0

    @property
    def elements(self) -> Elements:
        """Nothing."""
        return Elements()
