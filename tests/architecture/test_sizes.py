"""Every row of the table against the published formulas, typed again here with unequal dimensions."""

import pytest

from hopbound.architecture import ROWS, Defaults, Elements, Kind, Precisions, mixer_spec, parse_layers
from hopbound.architecture.mixer import MixerSpec
from hopbound.errors import InputError

# H query heads, H_kv key-value heads, key and value dimension, state, channels, window, width of a convolution.
H, HKV, DK, DV, N, C, W, K = 6, 3, 5, 7, 11, 13, 17, 4
ATTENTION = f"heads={H},kv_heads={HKV},head_dim={DK},value_dim={DV}"
MATRIX = f"heads={H},head_dim={DK},value_dim={DV}"
SUMMARY = H * (DV + 2)
KV = HKV * (DK + DV)
QKV_COLUMNS = (K - 1) * H * (DK + DK + DV)

TABLE: dict[str, tuple[str, Elements, int]] = {
    "full": (ATTENTION, Elements(summary=SUMMARY, kv_per_token=KV), H * DV),
    "mla": (f"heads={H},latent=20,rope_dim=3,value_dim={DV}", Elements(summary=SUMMARY, kv_per_token=20 + 3), H * DV),
    "window": (f"{ATTENTION},w={W}", Elements(window=KV * (W - 1)), H * DV),
    "chunk": (f"{ATTENTION},w={W}", Elements(window=KV * (W - 1)), H * DV),
    "block": (f"{ATTENTION},w={W}", Elements(window=KV * (W - 1)), H * DV),
    "longformer": (f"{ATTENTION},w={W},global_tokens=5", Elements(window=KV * (W - 1 + 5)), H * DV),
    "bigbird": (
        f"{ATTENTION},w={W},global_tokens=5,block=3,random=2",
        Elements(summary=SUMMARY, kv_per_token=KV),
        H * DV,
    ),
    "tglobal": (
        f"{ATTENTION},w={W},block=3",
        Elements(state=KV, window=KV * (W - 1), summary=SUMMARY + KV, kv_per_token=KV, kv_every=3),
        H * DV,
    ),
    "compositional": (
        f"heads={H},retrievals=4,head_dim={DK},value_dim={DV},select_dim=9",
        Elements(summary=H * (4 * DV + 2), kv_per_token=H * DK + 4 * DV),
        H * 4 * DV,
    ),
    "h2o": (f"{ATTENTION},budget=9", Elements(state=HKV * 9, window=KV * 9), H * DV),
    "adakv": (f"{ATTENTION},budget=9,recent=2", Elements(state=HKV * 9 + HKV, window=KV * 9), H * DV),
    "topk": (
        f"{ATTENTION},k=9,index_heads=2,index_dim=11",
        Elements(summary=9 * (1 + SUMMARY), kv_per_token=KV + 11),
        H * DV,
    ),
    "moba": (f"{ATTENTION},k=9,block=8", Elements(summary=9 * (H + SUMMARY), kv_per_token=KV), H * DV),
    "nsa": (
        f"{ATTENTION},k=9,block=8,w={W}",
        Elements(summary=9 * (H + SUMMARY) + 2 * SUMMARY + H * (DV + 1), kv_per_token=KV),
        H * DV,
    ),
    "dsa": (
        f"heads={H},latent=20,rope_dim=3,value_dim={DV},k=9,index_dim=11",
        Elements(summary=9 * (1 + SUMMARY), kv_per_token=20 + 3 + 11),
        H * DV,
    ),
    "indexed": (
        f"{ATTENTION},k=9,block=8,selections=2,index_dim=11",
        Elements(summary=9 * (2 + SUMMARY), kv_per_token=KV + 11),
        H * DV,
    ),
    "compressed": (
        f"heads={H},head_dim={DK},w={W},block=8,k=9,index_dim=11,overlap=1",
        Elements(
            window=DK * (W - 1) + 2 * 2 * (DK + 11) * 7 + 2 * (DK + 11) * 8,
            summary=H * (DK + 2) + 9 * (1 + H * (DK + 2)) + 3 * 2 * (DK + 11),
            kv_per_token=DK + 11,
            kv_every=8,
        ),
        H * DK,
    ),
    "fox": (ATTENTION, Elements(summary=SUMMARY, kv_per_token=KV + H), H * DV),
    "path": (ATTENTION, Elements(summary=SUMMARY, kv_per_token=KV + H), H * DV),
    "recurrence": (f"state={N},columns={C},channels={H}", Elements(state=N, conv=C), H),
    "linear": (f"{MATRIX},conv={K}", Elements(state=H * (DK * DV + DK), conv=QKV_COLUMNS), H * DV),
    "rfa": (MATRIX, Elements(state=H * (2 * DK * DV + 2 * DK)), H * DV),
    "poly": (MATRIX, Elements(state=H * (1 + DK + DK * DK) * (DV + 1)), H * DV),
    "retnet": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "gla": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "hgrn2": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "delta": (f"{MATRIX},conv={K}", Elements(state=H * DK * DV, conv=QKV_COLUMNS), H * DV),
    "deltaproduct": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "gdn": (f"{MATRIX},conv=1", Elements(state=H * DK * DV), H * DV),
    "kda": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "rwkv4": (f"channels={C}", Elements(state=3 * C), C),
    "rwkv6": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "rwkv7": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "mamba": (f"channels={C},state={N},conv={K}", Elements(state=C * N, conv=(K - 1) * C), C),
    "mamba2": (
        f"heads={H},head_dim={DK},state={N},groups=2,conv={K}",
        Elements(state=H * DK * N, conv=(K - 1) * (H * DK + 2 * N + 2 * N)),
        H * DK,
    ),
    "rglru": (f"channels={C},conv={K}", Elements(state=C, conv=(K - 1) * C), C),
    "mlstm": (MATRIX, Elements(state=H * (DK * DV + DK + 1)), H * DV),
    "lightning": (MATRIX, Elements(state=H * DK * DV), H * DV),
    "loglinear": (f"{MATRIX},levels=6", Elements(state=6 * H * DK * DV, length_limit=32), H * DV),
    "conv": (f"channels={C},kernel={K}", Elements(conv=(K - 1) * C), C),
    "shift": (f"channels={C}", Elements(conv=C), C),
    "mlp": ("", Elements(), 0),
}
FULL = {
    "dsa",
    "indexed",
    "compressed",
    "fox",
    "path",
    "full",
    "mla",
    "bigbird",
    "tglobal",
    "compositional",
    "topk",
    "moba",
    "nsa",
}


def one(text: str, defaults: Defaults | None = None) -> MixerSpec:
    ((mixer,),) = [layer.mixers for layer in parse_layers(text, defaults)]
    return mixer


@pytest.mark.parametrize("name", ROWS)
def test_elements(name: str) -> None:
    sizes, elements, width = TABLE[name]
    spec = one(f"{name}[{sizes}]" if sizes else name)
    assert spec.elements == elements
    assert spec.width == width


@pytest.mark.parametrize("name", ROWS)
def test_kind(name: str) -> None:
    expected = Kind.FULL if name in FULL else Kind.POINTWISE if name == "mlp" else Kind.BOUNDED
    assert one(f"{name}[{TABLE[name][0]}]" if TABLE[name][0] else name).kind is expected


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("full", Elements(summary=3 * 7, kv_per_token=2 * 3 * 5)),
        ("full[kv_heads=1]", Elements(summary=3 * 7, kv_per_token=2 * 5)),
        ("full[heads=2]", Elements(summary=2 * 7, kv_per_token=2 * 2 * 5)),
        ("full[head_dim=8]", Elements(summary=3 * 10, kv_per_token=2 * 3 * 8)),
        ("mla", Elements(summary=3 * 7, kv_per_token=4 * 5 + 2)),
        ("window", Elements(window=2 * 3 * 5 * 10)),
        ("linear", Elements(state=3 * (5 * 5 + 5))),
        ("mamba2", Elements(state=3 * 5 * 5)),
        ("mamba", Elements(state=3 * 5 * 5)),
        ("conv", Elements(conv=15 * (4 - 1))),
        ("shift", Elements(conv=15)),
    ],
)
def test_what_is_left_open_comes_from_the_defaults(text: str, elements: Elements) -> None:
    assert one(text, Defaults(heads=3, head_dim=5, window=11, kernel=4)).elements == elements


def test_one_head_of_24_and_a_convolution_of_width_4_are_the_defaults() -> None:
    assert one("conv").elements.conv == 3 * 24
    assert one("linear").elements.state == 24 * 24 + 24


@pytest.mark.parametrize(
    ("text", "state", "summary", "kv"),
    [
        ("full[heads=1,head_dim=4]", 0, 6 * 7, 8 * 3),
        ("window[heads=1,head_dim=4,w=3]", 8 * 2 * 3, 0, 0),
        ("linear[heads=1,head_dim=4]", 20 * 5, 0, 0),
        ("linear[heads=1,head_dim=4,conv=3]", 20 * 5 + 2 * 12 * 2, 0, 0),
        ("conv[channels=4,kernel=3]", 8 * 2, 0, 0),
        ("mlp", 0, 0, 0),
    ],
)
def test_each_kind_of_element_has_its_own_bits(text: str, state: int, summary: int, kv: int) -> None:
    spec, precisions = one(text), Precisions(activation=2, kv=3, state=5, summary=7)
    assert spec.state_bits(precisions) == state
    assert spec.summary_bits(precisions) == summary
    assert spec.kv_bits_per_token(precisions) == kv


def test_uniform_precisions() -> None:
    assert Precisions.uniform(4) == Precisions(activation=4, kv=4, state=4, summary=4)
    assert Precisions() == Precisions(activation=16, kv=16, state=32, summary=32)


@pytest.mark.parametrize("bits", [0, -1, 4097, 1.5, "16", True, None])
@pytest.mark.parametrize("field", ["activation", "kv", "state", "summary"])
def test_bits_are_whole_numbers_in_range(field: str, bits: object) -> None:
    with pytest.raises(InputError, match=rf"^{field} bits: got .*, expected a whole number from 1 to 4096$"):
        Precisions(**{field: bits})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"^bits: got .*, expected a whole number from 1 to 4096$"):
        Precisions.uniform(bits)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("field", ["heads", "head_dim", "window", "kernel"])
@pytest.mark.parametrize("value", [0, -3, 2**40 + 1, 1.0, "2"])
def test_defaults_are_whole_numbers_in_range(field: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"^{field}: got .*, expected a whole number from 1 to {2**40}$"):
        Defaults(**{field: value})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ROWS)
def test_every_key_changes_the_spec_and_nothing_else_may_be_given(name: str) -> None:
    sizes = {"heads": H, "kv_heads": HKV, "k": 9, "block": 8, "levels": 6, "budget": 30, "state": 5}
    base = {key: sizes[key] for key in ROWS[name].keys if key in sizes}
    spec = mixer_spec(name, base)
    for key in ROWS[name].keys:
        value = {"kv_heads": 2, "key_heads": 2, "heads": 2 * H, "beta": 2, "overlap": 1}.get(key, 19)
        assert getattr(mixer_spec(name, base | {key: value}), key) == value != getattr(spec, key)
    with pytest.raises(InputError, match=f"^{name} key: got 'color', expected one of "):
        mixer_spec(name, {"color": 1})


@pytest.mark.parametrize("key", ["recent", "floor"])
def test_what_is_kept_for_certain_is_at_most_the_budget(key: str) -> None:
    assert getattr(mixer_spec("adakv", {"budget": 5, key: 5}), key) == 5
    with pytest.raises(InputError, match=f"^adakv {key}: got 6, expected at most budget=5$"):
        mixer_spec("adakv", {"budget": 5, key: 6})
    assert one("h2o[budget=9]") == one("h2o[budget=9,recent=4]")
    assert one("adakv[budget=10]") == one("adakv[budget=10,recent=5,floor=8]")
