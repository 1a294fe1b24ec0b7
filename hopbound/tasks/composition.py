"""Sequential function composition: L dependent look-ups, each at an address that the one before has found.

Source: A Provable Expressiveness Hierarchy in Hybrid Linear-Full Attention (arXiv 2602.01763), its section on
sequential function composition; the sizes of domains and values are free here, the paper's are the default.

Sizes. `D_1 = m >= 2`, `D_{l+1} = n_l M_l` with `n_l >= 1`; functions `z_l : [D_l] -> [M_l]` for l = 1..L; a start
`z_0` in `[m]`; a query `w = (w_1, .., w_{L-1})` with `w_l` in `[n_l]`. The paper's sizes are `M_l = D_l`. With free
sizes `M_1 .. M_{L-1}` are any numbers of at least 2; always `M_L = D_L`.

Answer. `i_0 = z_0`, `i_1 = z_1(i_0)`, `i_{l+1} = z_{l+1}(w_l M_l + i_l)`; the answer is `i_L` in `[M_L]`.

Prompt. Token `x` of `z_l` has the value `z_l(x)`. A token carries its value only; its position says what it is.

- Hard order: `z_L, z_{L-1}, .., z_1, z_0, w`. Each hop needs what stands further left, so that a causal layer must
  look back once more for it.
- Easy order, the control: `w, z_0, z_1, .., z_L`, then one token of value 0 that asks. A state carried from left to
  right meets everything in the order of use, and the answer is read at the last token here too.
- The query is one token in mixed radix, `w_1 + n_1 (w_2 + n_2 (w_3 + ..))`, 0 when L = 1 (`query="one"`), or the
  L - 1 tokens `w_1, .., w_{L-1}`, none when L = 1, so that the hard order then ends with `z_0` (`query="many"`).

Distributions. What `sample` draws; start and query are always uniform.

- `uniform`: every value is independent and uniform.
- `permutations`: every function is a uniform permutation, so that no two addresses lead to the same value and no hop
  forgets anything; the sizes must be the paper's. Only these are counted and enumerated. The oracle answers for all
  functions, and adversarial examples and changes may be any: what is right does not depend on what is drawn.
- `sparse`: every function has one uniform base value; each entry has it with a chance of 3 in 4 and else is uniform.
  Most hops lead to the base value, and the most common value of z_L is often right.

A worked example, L = 2, m = 2, n_1 = 2, the paper's sizes: `D = M = (2, 4)`. Take `z_2 = (3, 0, 1, 2)`,
`z_1 = (1, 0)`, `z_0 = 0` and `w_1 = 1`. Then `i_0 = 0`, `i_1 = z_1(0) = 1`, the address in `z_2` is
`w_1 M_1 + i_1 = 1 * 2 + 1 = 3`, and the answer is `i_2 = z_2(3) = 2`:

>>> import numpy as np
>>> task = FunctionComposition(hops=2, m=2, n=(2,))
>>> [segment.name for segment in task.segments], task.prompt_length
(['z_2', 'z_1', 'z_0', 'w'], 8)
>>> prompts = np.array([[3, 0, 1, 2, 1, 0, 0, 1]])
>>> path = task.hops_path(prompts)
>>> path.values.tolist(), path.addresses.tolist()
([[0, 1, 2]], [[0, 3]])
>>> task.oracle(prompts).tolist()
[2]
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal, Self, cast, final, get_args

import numpy as np
from numpy.typing import NDArray

from hopbound.errors import InputError
from hopbound.tasks import stream
from hopbound.tasks.composition_parts import (
    HopPath,
    Parts,
    Segment,
    check_array,
    check_least,
    check_part,
    check_values,
    hops_text,
    numbers_text,
    value_sizes,
)
from hopbound.tasks.sizes import distinct, made_in_pairs
from hopbound.tasks.task import AnswerFunction, Batch, Task, instance_digits

Order = Literal["hard", "easy"]
Query = Literal["one", "many"]
Distribution = Literal["uniform", "permutations", "sparse"]

ADVERSARIAL_FAMILIES = ("permutation", "constant", "near-collision", "identity")
"""The families of `FunctionComposition.adversarial`, in the order in which they take turns."""

_QUERY = -1  # the "function number" of w, as the theory numbers its owner
_ASK = -2  # and of the token that asks, in the easy order
_SPARSE = 4  # of so many entries of a sparse function one is drawn by itself


@final
@dataclass(frozen=True, init=False)
class FunctionComposition(Task):
    """L-hop sequential function composition (see the module's text).

    Args:
        hops: L, at least 1.
        m: D_1, at least 2.
        n: n_1 .. n_{L-1}, each at least 1.
        values: M_1 .. M_{L-1} or M_1 .. M_L, each at least 2; None for the paper's sizes, `M_l = D_l`.
        order: `hard`, or `easy` for the control.
        query: `one` token or `many` (L - 1).
        distribution: `uniform`, `permutations` or `sparse`; a uniform task is written without it.

    Attributes are these, with `values` written out as M_1 .. M_L whatever was given.

    Raises:
        InputError: the sizes do not fit together, or a token would need more than 2^32 values.
    """

    name: ClassVar[str] = "composition"

    hops: int
    m: int
    n: tuple[int, ...]
    values: tuple[int, ...]
    order: Order
    query: Query
    distribution: Distribution

    def __init__(
        self,
        hops: int,
        m: int,
        n: Sequence[int] = (),
        values: Sequence[int] | None = None,
        order: Order = "hard",
        query: Query = "one",
        distribution: Distribution = "uniform",
    ) -> None:
        check_least("hops", hops, 1)
        check_least("m", m, 2)
        n = tuple(n)
        if len(n) != hops - 1:
            raise InputError("n", n, f"{numbers_text(hops - 1)} for {hops_text(hops)}")
        for number in n:
            check_least("n", number, 1)
        words = {"order": (order, Order), "query": (query, Query), "distribution": (distribution, Distribution)}
        for field, (value, choices) in words.items():
            if value not in get_args(choices):
                raise InputError(field, value, " or ".join(get_args(choices)))

        fields = {"hops": hops, "m": m, "n": n, "values": value_sizes(hops, m, n, values)}
        for field, value in (fields | {field: value for field, (value, _) in words.items()}).items():
            object.__setattr__(self, field, value)
        if distribution == "permutations" and self.values != self.domains:
            raise InputError("values", self.values, f"{self.domains}, as many as addresses, for permutations")
        if self.vocabulary_size > stream.MAX_RANGE:
            remedy = "; query='many' gives each w_l a token of its own" if query == "one" and hops > 2 else ""
            raise InputError("vocabulary", self.vocabulary_size, f"at most {stream.MAX_RANGE} values a token{remedy}")

    @cached_property
    def domains(self) -> tuple[int, ...]:
        """D_1 .. D_L."""
        return (self.m, *(n * size for n, size in zip(self.n, self.values[:-1], strict=True)))

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The stretches of the prompt, from left to right."""
        functions = [(f"z_{hop}", hop, size) for hop, size in enumerate(self.domains, start=1)]
        start = ("z_0", 0, 1)
        query = ("w", _QUERY, 1 if self.query == "one" else self.hops - 1)
        if self.order == "hard":
            layout = [*reversed(functions), start, query]
        else:
            layout = [query, start, *functions, ("ask", _ASK, 1)]
        made: list[Segment] = []
        position = 0
        for name, function, length in layout:
            if length:
                made.append(Segment(name, function, position, length))
            position += length
        return tuple(made)

    @property
    def vocabulary_size(self) -> int:
        """The largest alphabet of any token."""
        query = (math.prod(self.n),) if self.query == "one" else self.n
        return max(self.m, *self.values, *query)

    @property
    def prompt_length(self) -> int:
        """n = D_1 + .. + D_L and the tokens of start, query and, in the easy order, asking."""
        last = self.segments[-1]
        return last.start + last.length

    @property
    def answers(self) -> int:
        """M_L."""
        return self.values[-1]

    @property
    def instances(self) -> int:
        """M_1^D_1 .. M_L^D_L m n_1 .. n_{L-1}; D_1! .. D_L! m n_1 .. n_{L-1} of permutations."""
        if self.distribution == "permutations":
            functions = map(math.factorial, self.domains)
        else:
            functions = (value**domain for value, domain in zip(self.values, self.domains, strict=True))
        return math.prod(functions) * self.m * math.prod(self.n)

    @property
    def log2_instances(self) -> float:
        """The logarithm of `instances`, without that number: it can have millions of digits."""
        if self.distribution == "permutations":
            functions = sum(math.lgamma(d + 1) for d in self.domains) / math.log(2)
        else:
            functions = sum(d * math.log2(m) for d, m in zip(self.domains, self.values, strict=True))
        return functions + math.log2(self.m) + sum(math.log2(n) for n in self.n)

    @property
    def chance(self) -> float:
        """1 / M_L."""
        return 1 / self.answers

    def position(self, function: int, address: int) -> int:
        """Where in the prompt the token `address` of `z_function` is (0: the start; -1: the query; -2: asking).

        Raises:
            InputError: the prompt has no such token.
        """
        segment = self._by_function.get(function)
        if segment is None:
            raise InputError("function", function, f"one of {', '.join(map(str, sorted(self._by_function)))}")
        if not 0 <= address < segment.length:
            raise InputError("address", address, f"0 to {segment.length - 1} in {segment.name}")
        return segment.start + address

    def sample(self, seed: int, split: str, start: int, count: int) -> Batch:
        """Examples of the task's distribution.

        Raises:
            InputError: seed, split or range are not valid (see `hopbound.tasks.stream`).
        """
        ranges = self._choices()
        if self.distribution == "sparse":
            ranges = np.concatenate([ranges, np.full(len(ranges), _SPARSE), self.values])
        prompts = self._of_choices(stream.integers(seed, self.identity, split, start, count, ranges))
        return self._labelled(prompts)

    def enumerate(self, start: int, count: int) -> Batch:
        """Instances by number: the tokens are its digits in mixed radix, the last token fastest.

        Of permutations, the digits of a function are the choices of a Fisher-Yates shuffle.

        Raises:
            InputError: the range is not valid or goes beyond the instances or beyond 2^63 - 1.
        """
        prompts = instance_digits(start, count, self._choices(), self.instances)
        return self._labelled(self._permuted(prompts) if self.distribution == "permutations" else prompts)

    def adversarial(self, seed: int, start: int, count: int) -> Batch:
        """Examples from families that trip a solver which is right on most uniform ones.

        The families of `ADVERSARIAL_FAMILIES` take turns, two examples each (see `adversarial_family`). Start and
        query are uniform; the functions are

        - permutation: random permutations, or where D_l differs from M_l maps that take every value equally often
          up to one;
        - constant: each function has one random value;
        - near-collision: uniform, and the examples 2i and 2i + 1 differ in exactly one entry, which both paths
          of hops read, in z_1, z_2, .. in turn. The right answers differ: the new value is one that leads to another
          answer; where none does, the entry is taken in z_L, where every change is seen;
        - identity: `x mod M_l` or, as often, `x + 1 mod M_l`.

        Raises:
            InputError: seed or range are not valid (see `hopbound.tasks.stream`).
        """
        prompts = made_in_pairs(partial(self._adversarial_pairs, seed), self.prompt_length, start, count)
        return self._labelled(prompts)

    @staticmethod
    def adversarial_family(number: int) -> str:
        """The family of the adversarial example with this number."""
        return ADVERSARIAL_FAMILIES[number // 2 % len(ADVERSARIAL_FAMILIES)]

    def changes(self, batch: Batch, start: int) -> Iterator[NDArray[np.int64]]:
        """Pairs from a batch: the entry that each instance visits, in z_L first, gets a value that changes the answer.

        See `visited_changes`.
        """
        for hop in range(self.hops, 0, -1):
            pairs = self.visited_changes(batch, hop, start)
            if len(pairs):
                yield pairs

    def visited_changes(self, batch: Batch, hop: int, start: int) -> NDArray[np.int64]:
        """Pairs from a batch: the entry of z_hop that each instance visits gets another value that changes the answer.

        The new value is the first one, in cyclic order from a start that depends on the row, whose answer differs;
        rows without any are left out.

        Args:
            batch: N instances.
            hop: which function is changed, 1..L.
            start: number of the batch's first instance, so that values go on from batch to batch.

        Returns:
            int64 [at most N, 2, n].
        """
        values = self.values[hop - 1]
        path = self.hops_path(batch.prompts)
        positions = self.position(hop, 0) + path.addresses[:, hop - 1]
        rows = np.arange(len(batch))
        old = batch.prompts[rows, positions]
        changed = batch.prompts.copy()
        open_rows = rows
        for step in range(min(values - 1, 64)):
            shift = 1 + (start + open_rows + step) % (values - 1)
            changed[open_rows, positions[open_rows]] = (old[open_rows] + shift) % values
            same = self.oracle(changed[open_rows]) == batch.answers[open_rows]
            open_rows = open_rows[same]
            if not len(open_rows):
                break
        keep = np.ones(len(batch), dtype=bool)
        keep[open_rows] = False
        return np.stack([batch.prompts, changed], axis=1)[keep]

    def place(self, position: int) -> tuple[str, int]:
        """The function that a token belongs to, and its address there."""
        segment = next(s for s in self.segments if s.start <= position < s.start + s.length)
        return segment.name, position - segment.start

    def path(self, prompts: NDArray[np.int64]) -> list[list[int]]:
        """i_0 .. i_L of each prompt."""
        return self.hops_path(prompts).values.tolist()

    def smaller(self) -> Iterator[Task]:
        """Tasks of the paper's sizes with fewer addresses, shortest first."""
        found: dict[int, FunctionComposition] = {}
        for m in range(2, min(self.m, 4) + 1):
            for parts in range(1, 3):
                n = tuple(min(parts, limit) for limit in self.n)
                try:
                    candidate = FunctionComposition(hops=self.hops, m=m, n=n, order=self.order, query=self.query)
                except InputError:
                    continue
                fits = candidate.vocabulary_size <= self.vocabulary_size and candidate.answers <= self.answers
                if fits and candidate.prompt_length < self.prompt_length:
                    found.setdefault(candidate.prompt_length, candidate)
        yield from (found[length] for length in sorted(found))

    def compose(self, parts: Parts) -> NDArray[np.int64]:
        """Prompts [N, n] of these instances.

        Raises:
            InputError: a shape or a value does not fit the task's sizes.
        """
        count = len(parts.start)
        if len(parts.functions) != self.hops:
            raise InputError("functions", len(parts.functions), f"{self.hops}, one a hop")
        for hop, (values, domain) in enumerate(zip(parts.functions, self.domains, strict=True), start=1):
            check_part(f"z_{hop}", values, (count, domain), self.values[hop - 1])
        check_part("z_0", parts.start, (count,), self.m)
        check_part("w", parts.query, (count, self.hops - 1), self.n)

        prompts = np.zeros((count, self.prompt_length), dtype=np.int64)
        for segment in self.segments:
            if segment.function > 0:
                prompts[:, segment.span] = parts.functions[segment.function - 1]
            elif segment.function == 0:
                prompts[:, segment.start] = parts.start
            elif segment.function == _QUERY:
                one = self.query == "one"
                prompts[:, segment.span] = (parts.query @ self._places)[:, np.newaxis] if one else parts.query
        return prompts

    def decode(self, prompts: NDArray[np.int64]) -> Parts:
        """The instances behind prompts [N, n]; the functions are views of the prompts.

        Raises:
            InputError: a shape or a value does not fit the task's sizes.
        """
        check_array("prompts", prompts, (len(prompts), self.prompt_length))
        for segment in self.segments:
            check_values(segment.name, prompts[:, segment.span], self._segment_alphabet(segment))

        if self.hops == 1:
            query = np.zeros((len(prompts), 0), dtype=np.int64)
        elif self.query == "one":
            query = prompts[:, self._by_function[_QUERY].span] // self._places % np.array(self.n)
        else:
            query = prompts[:, self._by_function[_QUERY].span]
        functions = tuple(prompts[:, self._by_function[hop].span] for hop in range(1, self.hops + 1))
        return Parts(functions, prompts[:, self._by_function[0].start], query)

    def hops_path(self, prompts: NDArray[np.int64]) -> HopPath:
        """The values and addresses that the right way through prompts [N, n] visits.

        Raises:
            InputError: these are not prompts of this task.
        """
        parts = self.decode(prompts)
        values = np.empty((len(prompts), self.hops + 1), dtype=np.int64)
        addresses = np.empty((len(prompts), self.hops), dtype=np.int64)
        values[:, 0] = parts.start
        for hop, function in enumerate(parts.functions):
            addresses[:, hop] = self._addresses(parts, hop, values[:, [hop]])[:, 0]
            values[:, hop + 1] = np.take_along_axis(function, addresses[:, [hop]], axis=1)[:, 0]
        return HopPath(values, addresses)

    def oracle(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The right answers [N], i_L, to prompts [N, n].

        Raises:
            InputError: these are not prompts of this task.
        """
        return self.hops_path(prompts).values[:, -1].copy()

    def baselines(self) -> dict[str, AnswerFunction]:
        """Shortcuts: what a model that misses a hop, or looks at no address at all, would answer.

        - constant: 0 (under uniform examples no answer is more frequent than another);
        - most common value: of the tokens of z_L in the prompt, the smallest such;
        - stop one hop early: i_{L-1} as if it were the answer, modulo M_L;
        - skip the first hop: z_0 in place of i_1, modulo M_1. For L = 1 the two last ones are the same.
        """
        return {
            "constant": lambda prompts: np.zeros(len(prompts), dtype=np.int64),
            "most common value": self._most_common_value,
            "stop one hop early": lambda prompts: self.hops_path(prompts).values[:, -2] % self.answers,
            "skip the first hop": self._skip_first_hop,
        }

    def to_json(self) -> dict[str, object]:
        """A JSON object with every size written out."""
        return {
            "task": self.name,
            "hops": self.hops,
            "m": self.m,
            "n": list(self.n),
            "values": list(self.values),
            "order": self.order,
            "query": self.query,
            **({} if self.distribution == "uniform" else {"distribution": self.distribution}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """The task that `to_json` wrote.

        Raises:
            InputError: a key is missing or unknown, or a value does not fit.
        """
        keys = ("task", "hops", "m", "n", "values", "order", "query")
        if set(value) - {"distribution"} != set(keys):
            raise InputError("task keys", sorted(value), f"exactly {', '.join(keys)}, and distribution if not uniform")
        if value["task"] != cls.name:
            raise InputError("task", value["task"], cls.name)
        for key in ("n", "values"):
            if not isinstance(value[key], list):
                raise InputError(key, value[key], "a list of numbers")
        return cls(
            # The constructor checks all of these, numbers and names alike.
            hops=cast(int, value["hops"]),
            m=cast(int, value["m"]),
            n=cast(list[int], value["n"]),
            values=cast(list[int], value["values"]),
            order=cast(Order, value["order"]),
            query=cast(Query, value["query"]),
            distribution=cast(Distribution, value.get("distribution", "uniform")),
        )

    @cached_property
    def _by_function(self) -> dict[int, Segment]:
        return {segment.function: segment for segment in self.segments}

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """Place values [L-1] of w_1 .. w_{L-1} in a query of one token: 1, n_1, n_1 n_2, .."""
        return np.array([math.prod(self.n[:hop]) for hop in range(self.hops - 1)], dtype=np.int64)

    def _segment_alphabet(self, segment: Segment) -> int | tuple[int, ...]:
        """Number of values of a segment's tokens: one for all, or one a token."""
        if segment.function > 0:
            return self.values[segment.function - 1]
        if segment.function == 0:
            return self.m
        if segment.function == _QUERY:
            return math.prod(self.n) if self.query == "one" else self.n
        return 1

    def _alphabets(self) -> NDArray[np.int64]:
        """Number of values of each token, [n]."""
        sizes = np.empty(self.prompt_length, dtype=np.int64)
        for segment in self.segments:
            sizes[segment.span] = self._segment_alphabet(segment)
        return sizes

    def _choices(self) -> NDArray[np.int64]:
        """Ranges of what each token is drawn from, [n]: its alphabet, or of a permutation the values that are left."""
        ranges = self._alphabets()
        if self.distribution == "permutations":
            for hop, domain in enumerate(self.domains, start=1):
                ranges[self._by_function[hop].span] = domain - np.arange(domain)
        return ranges

    def _of_choices(self, choices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Prompts [N, n] of the distribution from what was drawn."""
        if self.distribution == "permutations":
            return self._permuted(choices)
        if self.distribution == "sparse":
            return self._thinned(*np.split(choices, [self.prompt_length, 2 * self.prompt_length], axis=1))
        return choices

    def _permuted(self, choices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Prompts [N, n] whose functions are permutations, from choices [N, n] below `_choices`."""
        prompts = choices.copy()
        for hop, domain in enumerate(self.domains, start=1):
            span = self._by_function[hop].span
            prompts[:, span] = distinct(choices[:, span], domain)
        return prompts

    def _thinned(
        self, prompts: NDArray[np.int64], chances: NDArray[np.int64], bases: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Prompts [N, n] with base values [N, L] in their functions where the chances [N, n] are not 0."""
        thin = prompts.copy()
        for hop in range(1, self.hops + 1):
            span = self._by_function[hop].span
            thin[:, span] = np.where(chances[:, span] == 0, prompts[:, span], bases[:, [hop - 1]])
        return thin

    def _labelled(self, prompts: NDArray[np.int64]) -> Batch:
        return Batch(prompts, self.oracle(prompts))

    def _addresses(self, parts: Parts, hop: int, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Addresses [N, K] in z_{hop+1} that follow from candidate values i_hop [N, K]."""
        if hop == 0:
            return values
        return parts.query[:, [hop - 1]] * self.values[hop - 1] + values

    def _finish(self, parts: Parts, hop: int, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Answers [N, K] that follow from candidate values i_hop [N, K]."""
        for later in range(hop, self.hops):
            values = np.take_along_axis(parts.functions[later], self._addresses(parts, later, values), axis=1)
        return values

    def _most_common_value(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = self.decode(prompts).functions[-1]
        # Row by row: counting all rows at once would take as much memory again as the prompts.
        return np.fromiter((np.bincount(row).argmax() for row in rows), dtype=np.int64, count=len(rows))

    def _skip_first_hop(self, prompts: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = self.decode(prompts)
        return self._finish(parts, 1, parts.start[:, np.newaxis] % self.values[0])[:, 0]

    def _adversarial_pairs(self, seed: int, low: int, high: int) -> NDArray[np.int64]:
        """Adversarial prompts number `low .. high - 1`; both are even, so that no pair is cut."""
        # Another identity than the sampler's: these words belong to no split a caller can name.
        identity = f"{self.identity} adversarial"
        drawn = stream.words(seed, identity, "adversarial", low, high - low, self.prompt_length)
        prompts = stream.below(drawn, self._alphabets())
        numbers = np.arange(low, high)
        turn = numbers // 2 % len(ADVERSARIAL_FAMILIES)
        rows = {family: np.flatnonzero(turn == index) for index, family in enumerate(ADVERSARIAL_FAMILIES)}

        near = rows["near-collision"]
        hops = numbers[near[::2]] // (2 * len(ADVERSARIAL_FAMILIES)) % self.hops + 1
        prompts[near[1::2]] = self._near_collisions(prompts[near[::2]], prompts[near[1::2]], hops)

        for hop, (domain, size) in enumerate(zip(self.domains, self.values, strict=True), start=1):
            segment = self._by_function[hop]
            first = prompts[:, segment.start, np.newaxis].copy()
            ranks = np.argsort(drawn[rows["permutation"], segment.span], axis=1, kind="stable")
            prompts[rows["permutation"], segment.span] = ranks * size // domain
            prompts[rows["constant"], segment.span] = first[rows["constant"]]
            prompts[rows["identity"], segment.span] = (np.arange(domain) + first[rows["identity"]] % 2) % size
        return prompts

    def _near_collisions(
        self, prompts: NDArray[np.int64], spare: NDArray[np.int64], hops: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Partners [K, n] of prompts [K, n] that differ in one entry of z_hop on the path and have other answers.

        `spare` holds other uniform prompts, whose entries choose among the values that do; `hops` [K] says where.
        """
        parts, path = self.decode(prompts), self.hops_path(prompts)
        partners = prompts.copy()
        hops = hops.copy()
        for hop in range(1, self.hops + 1):
            rows = np.flatnonzero(hops == hop)
            position = self._by_function[hop].start + path.addresses[rows, hop - 1]
            size = self.values[hop - 1]
            candidates = (spare[rows, position][:, np.newaxis] + np.arange(size)) % size
            differs = self._finish(parts.rows(rows), hop, candidates) != path.values[rows, -1:]
            chosen = candidates[np.arange(len(rows)), differs.argmax(axis=1)]
            found = differs.any(axis=1)
            partners[rows[found], position[found]] = chosen[found]
            hops[rows[~found]] = self.hops  # where M_L >= 2 values are all different answers
        return partners
