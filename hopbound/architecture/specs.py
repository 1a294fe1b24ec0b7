"""One row a mixer: its name, its aliases, its size family, its keys and where their defaults come from.

A row reads: these *keys* may be given in `name[key=value,…]`; a key that is not given takes its default, a function of
the keys before it and of the `Defaults` of the command line; what is no key is *fixed* by the name. A key without a
default must be given.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hopbound.architecture.mixer import MixerSpec
from hopbound.architecture.sizes import (
    Attention,
    BlockSparseAttention,
    ChannelState,
    Columns,
    CompressedAttention,
    EvictingAttention,
    ForgettingAttention,
    GlobalWindowAttention,
    GroupedState,
    LatentAttention,
    MatrixState,
    NativeSparseAttention,
    OpenState,
    Pointwise,
    SearchRetrieval,
    SelectiveAttention,
    SelectiveLatentAttention,
    TransientGlobalAttention,
    WindowAttention,
)
from hopbound.errors import InputError

MAX_SIZE = 2**40


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """Sizes for what a schedule leaves open: `--heads --head-dim --window --kernel` of the command line."""

    heads: int = 1
    head_dim: int = 24
    window: int = 128
    kernel: int = 4

    def __post_init__(self) -> None:
        for name in ("heads", "head_dim", "window", "kernel"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
                raise InputError(name, value, f"a whole number from 1 to {MAX_SIZE}")


Sizes = Mapping[str, int]
Rule = Callable[[Sizes, Defaults], int]


def _heads(_: Sizes, d: Defaults) -> int:
    return d.heads


def _head_dim(_: Sizes, d: Defaults) -> int:
    return d.head_dim


def _same(key: str) -> Rule:
    return lambda sizes, _: sizes[key]


def _number(value: int) -> Rule:
    return lambda _, __: value


def _width(_: Sizes, d: Defaults) -> int:
    return d.heads * d.head_dim


_ATTENTION: dict[str, Rule | None] = {
    "heads": _heads,
    "kv_heads": _same("heads"),
    "head_dim": _head_dim,
    "value_dim": _same("head_dim"),
}
_GATED: dict[str, Rule | None] = {**_ATTENTION, "gate": _number(0)}
_WINDOW: dict[str, Rule | None] = {**_ATTENTION, "w": lambda _, d: d.window, "gate": _number(0)}
_LATENT: dict[str, Rule | None] = {
    "heads": _heads,
    "latent": lambda _, d: 4 * d.head_dim,
    "rope_dim": lambda _, d: max(d.head_dim // 2, 1),
    "value_dim": _head_dim,
}
_EVICTING: dict[str, Rule | None] = {**_ATTENTION, "budget": None, "recent": lambda sizes, _: sizes["budget"] // 2}
_MATRIX: dict[str, Rule | None] = {
    "heads": _heads,
    "head_dim": _head_dim,
    "value_dim": _same("head_dim"),
    "conv": _number(0),
}
_PLAIN: dict[str, Rule] = {
    "key_heads": _same("heads"),
    "features": _same("head_dim"),
    "levels": _number(1),
    "normaliser": _number(0),
    "scalars": _number(0),
    "beta": _number(1),
    "steps": _number(1),
}
_NORMALISED: dict[str, Rule] = {**_PLAIN, "normaliser": _number(1)}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One mixer of the table.

    Attributes:
        family: its size family.
        keys: what may be given, in order, each with its default rule; None: must be given.
        fixed: the family's remaining fields, as rules of the keys.
        aliases: other names for it.
        excluded: why the theorems' model class does not contain it; empty if it does.
        runs: whether `mixers` holds it; rows without are for the sizes and claims of real models.
        about: what it is, with its source.
    """

    family: type[MixerSpec]
    keys: Mapping[str, Rule | None]
    about: str
    fixed: Mapping[str, Rule] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    excluded: str = ""
    runs: bool = True


def _matrix(about: str, *, fixed: Mapping[str, Rule] = _PLAIN, aliases: tuple[str, ...] = ()) -> Row:
    return Row(family=MatrixState, keys=_MATRIX, fixed=fixed, about=about, aliases=aliases)


def _delta(about: str, *, aliases: tuple[str, ...] = (), **more: Rule) -> Row:
    keys = {**_MATRIX, **more, "beta": _number(1), "key_heads": _same("heads")}
    fixed = {key: rule for key, rule in _PLAIN.items() if key not in keys}
    return Row(family=MatrixState, keys=keys, fixed=fixed, about=about, aliases=aliases)


ROWS: dict[str, Row] = {
    "full": Row(
        family=Attention,
        keys=_GATED,
        aliases=("attention", "attn", "softmax", "mha", "gqa", "mqa"),
        about="softmax attention over the whole past (arXiv 1706.03762), grouped-query with kv_heads",
    ),
    "mla": Row(
        family=LatentAttention,
        keys=_LATENT,
        about="multi-head latent attention (arXiv 2405.04434); default latent 4 d and rotary part d / 2 as there",
    ),
    "window": Row(
        family=WindowAttention,
        keys=_WINDOW,
        aliases=("swa", "sliding", "local"),
        about="sliding-window attention over the last w tokens, the token itself included",
    ),
    "chunk": Row(
        family=WindowAttention,
        keys=_WINDOW,
        aliases=("chunked",),
        about="attention inside the token's own chunk of w tokens",
    ),
    "block": Row(
        family=WindowAttention,
        keys=_WINDOW,
        aliases=("blockwise",),
        about="block-local attention: blocks of w tokens that do not see each other (arXiv 1911.02972)",
    ),
    "h2o": Row(
        family=EvictingAttention,
        keys=_EVICTING,
        fixed={"floor": _same("budget"), "shared": _number(0)},
        aliases=("heavy_hitter",),
        about="attention over a cache of `budget` tokens a head: the `recent` newest and those that got the most "
        "weight (arXiv 2306.14048)",
    ),
    "adakv": Row(
        family=EvictingAttention,
        keys={**_EVICTING, "floor": lambda sizes, _: 4 * sizes["budget"] // 5},
        fixed={"shared": _number(1)},
        about="the same with one budget for the heads of a layer, `budget` a head on average and at least `floor` "
        "(arXiv 2407.11550)",
    ),
    "compositional": Row(
        family=SearchRetrieval,
        keys={
            "heads": _heads,
            "retrievals": _same("heads"),
            "head_dim": _head_dim,
            "value_dim": _same("head_dim"),
            "select_dim": _same("head_dim"),
        },
        about="compositional attention: `heads` searches, each chooses by a second softmax among `retrievals` values "
        "(arXiv 2110.09419)",
    ),
    "longformer": Row(
        family=GlobalWindowAttention,
        keys={**_WINDOW, "global_tokens": _number(1)},
        about="a window and the first `global_tokens` tokens, which all later ones see (arXiv 2004.05150), causal",
    ),
    "bigbird": Row(
        family=BlockSparseAttention,
        keys={**_WINDOW, "global_tokens": _number(1), "block": _number(64), "random": _number(3)},
        about="a window, the first tokens, `random` drawn earlier blocks of `block` tokens (arXiv 2007.14062), causal",
    ),
    "tglobal": Row(
        family=TransientGlobalAttention,
        keys={**_WINDOW, "block": _number(16)},
        aliases=("transient_global",),
        about="a window and a summary of each completed block (LongT5, arXiv 2112.07916), causal",
    ),
    "topk": Row(
        family=SelectiveAttention,
        keys={**_ATTENTION, "k": None, "index_heads": _same("heads"), "index_dim": _same("head_dim")},
        fixed={"block": _number(1), "selections": _number(1)},
        about="attention over the k tokens with the best scores of a score of their own, shared by all heads "
        "(arXiv 2512.02556)",
    ),
    "moba": Row(
        family=SelectiveAttention,
        keys={**_ATTENTION, "k": None, "block": None},
        fixed={"selections": _same("heads"), "index_heads": _number(0), "index_dim": _number(0)},
        about="mixture of block attention: a head's own k blocks with the best mean-key score, the query's own always "
        "among them (arXiv 2502.13189)",
    ),
    "nsa": Row(
        family=NativeSparseAttention,
        keys={**_ATTENTION, "k": None, "block": None, "w": lambda _, d: d.window},
        excluded="selects blocks by scores that are summed over a group and normalised over the whole past",
        about="native sparse attention: compressed, selected and window branches (arXiv 2502.11089)",
    ),
    "dsa": Row(
        family=SelectiveLatentAttention,
        keys={**_LATENT, "k": None, "index_dim": _head_dim},
        aliases=("indexed_mla",),
        runs=False,
        about="latent attention over the k tokens with the best index scores (arXiv 2512.02556)",
    ),
    "indexed": Row(
        family=SelectiveAttention,
        keys={**_ATTENTION, "k": None, "block": _number(1), "selections": _same("heads"), "index_dim": _head_dim},
        fixed={"index_heads": _same("selections")},
        runs=False,
        about="attention over the k blocks with the best scores of index keys; `selections` choices a query",
    ),
    "compressed": Row(
        family=CompressedAttention,
        keys={
            "heads": _heads,
            "head_dim": _head_dim,
            "w": lambda _, d: d.window,
            "block": None,
            "k": _number(0),
            "index_dim": _number(0),
            "overlap": _number(0),
        },
        runs=False,
        about="a window and pooled blocks, all of them or the k with the best index scores (DeepSeek-V4)",
    ),
    "fox": Row(
        family=ForgettingAttention,
        keys=_ATTENTION,
        aliases=("forgetting",),
        runs=False,
        about="softmax attention with a forget gate a head (arXiv 2503.02130)",
    ),
    "path": Row(
        family=ForgettingAttention,
        keys=_ATTENTION,
        runs=False,
        excluded="puts a map of the input between queries and keys",
        about="softmax attention whose position encoding is a product of reflections (arXiv 2505.16381), with a forget "
        "gate",
    ),
    "linear": _matrix(
        "linear attention with feature map elu + 1 and normaliser (arXiv 2006.16236)",
        fixed=_NORMALISED,
        aliases=("linattn", "linear_attention"),
    ),
    "rfa": _matrix(
        "random-feature attention, sine and cosine of d projections (arXiv 2103.02143)",
        fixed={**_NORMALISED, "features": lambda s, _: 2 * s["head_dim"]},
    ),
    "poly": _matrix(
        "polynomial features 1, x, x⊗x of the softmax's second-order expansion (arXiv 2402.07901)",
        fixed={**_NORMALISED, "features": lambda s, _: 1 + s["head_dim"] + s["head_dim"] ** 2},
        aliases=("fast",),
    ),
    "retnet": _matrix("retention with a fixed decay a head (arXiv 2307.08621)", aliases=("retention",)),
    "gla": _matrix("gated linear attention, a decay for each key channel (arXiv 2312.06635)"),
    "hgrn2": _matrix("gated recurrence with outer-product state (arXiv 2404.07904)"),
    "delta": _delta("delta rule: overwrite what a key holds (arXiv 2406.06484)", aliases=("deltanet",)),
    "deltaproduct": _delta("`steps` steps of the delta rule a token (arXiv 2502.10297)", steps=_number(2)),
    "gdn": _delta("delta rule with a decay a head (arXiv 2412.06464)", aliases=("gated_deltanet",)),
    "kda": _delta("delta rule with a decay for each key channel (arXiv 2510.26692)"),
    "rwkv4": Row(
        family=ChannelState,
        keys={"channels": _width},
        fixed={"state": _number(3), "conv": _number(0)},
        about="exponentially decayed average: numerator, denominator, running maximum (arXiv 2305.13048)",
    ),
    "rwkv6": _matrix("matrix state with data-dependent channel decay (arXiv 2404.05892)"),
    "rwkv7": _matrix("generalised delta rule with channel decay (arXiv 2503.14456)"),
    "mamba": Row(
        family=ChannelState,
        keys={"channels": _width, "state": _head_dim, "conv": _number(0)},
        about="selective state space, `state` numbers a channel (arXiv 2312.00752)",
    ),
    "mamba2": Row(
        family=GroupedState,
        keys={
            "heads": _heads,
            "head_dim": _head_dim,
            "state": _same("head_dim"),
            "groups": _number(1),
            "conv": _number(0),
        },
        about="state space duality: scalar decay a head (arXiv 2405.21060)",
        aliases=("ssd",),
    ),
    "rglru": Row(
        family=ChannelState,
        keys={"channels": _width, "conv": _number(0)},
        fixed={"state": _number(1)},
        about="real-gated linear recurrent unit (arXiv 2402.19427)",
    ),
    "mlstm": _matrix(
        "matrix memory with exponential gates, normaliser and running maximum (arXiv 2405.04517)",
        fixed={**_NORMALISED, "scalars": _number(1)},
        aliases=("xlstm",),
    ),
    "lightning": _matrix("linear attention with a fixed decay a head (arXiv 2401.04658)"),
    "loglinear": Row(
        family=MatrixState,
        keys={**_MATRIX, "levels": None},
        fixed={key: rule for key, rule in _PLAIN.items() if key != "levels"},
        about="a state for each power of two of the past (arXiv 2506.04761): bounded up to 2^(levels-1) tokens only",
    ),
    "conv": Row(
        family=Columns,
        keys={"channels": _width, "kernel": lambda _, d: d.kernel},
        aliases=("convolution",),
        about="causal convolution over the last `kernel` tokens, a filter for each channel",
    ),
    "shift": Row(
        family=Columns,
        keys={"channels": _width},
        fixed={"kernel": _number(2)},
        aliases=("token_shift",),
        about="mixes each token with the one before it",
    ),
    "recurrence": Row(
        family=OpenState,
        keys={"state": None, "columns": _number(0), "channels": _width},
        runs=False,
        about="any recurrence with so many numbers of state, and `columns` of convolutions and token shifts",
    ),
    "mlp": Row(family=Pointwise, keys={}, runs=False, aliases=("ffn", "moe"), about="a position-wise layer"),
}

_BY_ALIAS = {alias: name for name, row in ROWS.items() for alias in (name, *row.aliases)}
_MAY_BE_ZERO = frozenset({"conv", "recent", "floor", "rope_dim", "columns"})
_MAY_BE_ZERO_IN = frozenset(
    {("compressed", "k"), ("compressed", "index_dim"), ("compressed", "overlap"), ("dsa", "index_dim")}
)
_MOST = {"beta": 2, "overlap": 1}
_MOST_KEY = {"recent": "budget", "floor": "budget"}
_DIVISORS = {"kv_heads": "heads", "key_heads": "heads"}


def canonical_name(name: str) -> str:
    """The table's name for a name or alias.

    Raises:
        InputError: no mixer is called so.
    """
    if name not in _BY_ALIAS:
        near = difflib.get_close_matches(name, _BY_ALIAS, n=1)
        expected = f"a mixer (did you mean {near[0]!r}?)" if near else f"one of {' '.join(ROWS)}"
        raise InputError("mixer", name, expected)
    return _BY_ALIAS[name]


def mixer_spec(name: str, given: Sizes | None = None, defaults: Defaults | None = None) -> MixerSpec:
    """The spec of mixer `name` with the sizes `given`, what is left open taken from `defaults`.

    Raises:
        InputError: unknown name or key, a missing key that has no default, a size out of range, `heads` that is no
            multiple of `kv_heads` or `key_heads`, `recent` or `floor` above `budget`.
    """
    name = canonical_name(name)
    row, given, defaults = ROWS[name], given or {}, defaults or Defaults()
    for key, value in given.items():
        if key not in row.keys:
            raise InputError(f"{name} key", key, f"one of {' '.join(row.keys) or '(no keys)'}")
        least = 0 if key in _MAY_BE_ZERO or (name, key) in _MAY_BE_ZERO_IN else 1
        most = _MOST.get(key, MAX_SIZE)
        if not least <= value <= most:
            raise InputError(f"{name} {key}", value, f"a whole number from {least} to {most}")
    sizes: dict[str, int] = {}
    for key, rule in row.keys.items():
        if key in given:
            sizes[key] = given[key]
        elif rule is None:
            raise InputError(f"{name} {key}", None, f"a value: {name}[{key}=…] has no default")
        else:
            sizes[key] = rule(sizes, defaults)
    for key, rule in row.fixed.items():
        sizes[key] = rule(sizes, defaults)
    for key, whole in _DIVISORS.items():
        if key in sizes and sizes[whole] % sizes[key]:
            raise InputError(f"{name} {key}", sizes[key], f"a divisor of {whole}={sizes[whole]}")
    for key, other in _MOST_KEY.items():
        if key in row.keys and sizes[key] > sizes[other]:
            raise InputError(f"{name} {key}", sizes[key], f"at most {other}={sizes[other]}")
    return row.family(name=name, **sizes)


def spec_text(spec: MixerSpec) -> str:
    """The spec in the schedule grammar; keys whose value follows from the keys before them are left out."""
    shown: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for key, rule in ROWS[spec.name].keys.items():
        sizes[key] = getattr(spec, key)
        follows = rule is not None and all(rule(sizes, d) == sizes[key] for d in _PROBES)
        if not follows:
            shown[key] = sizes[key]
    given = ",".join(f"{key}={value}" for key, value in shown.items())
    return f"{spec.name}[{given}]" if given else spec.name


# Two unlike sets of defaults: a key is left out of the text only if it comes out right whatever the reader's defaults.
_PROBES = (Defaults(heads=1, head_dim=3, window=5, kernel=2), Defaults(heads=7, head_dim=11, window=13, kernel=9))
