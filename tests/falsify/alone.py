"""A stored pair checked by the file, the weights and the tasks' definitions alone: nothing of `hopbound.falsify`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hopbound.decoder.folder import file_sha256, load_model


def composed(task: dict[str, Any], prompt: list[int]) -> int:
    """Hard order, the query in one token."""
    values, n = task["values"], task["n"]
    domains = [task["m"], *(fan * size for fan, size in zip(n, values[:-1], strict=True))]
    *functions, i, query = prompt
    for hop, domain in enumerate(domains):
        start = sum(domains[hop + 1 :])  # z_L stands first
        table = functions[start : start + domain]
        part = 0
        if hop:
            query, part = divmod(query, n[hop - 1])
        i = table[part * (values[hop - 1] if hop else 0) + i]
    return i


def recalled(task: dict[str, Any], prompt: list[int]) -> int:
    """Key, value, key, value, .., key."""
    *pairs, key = prompt
    return dict(zip(pairs[::2], pairs[1::2], strict=True))[key]


RIGHT: dict[str, Callable[[dict[str, Any], list[int]], int]] = {"composition": composed, "recall": recalled}


def holds(path: Path) -> bool:
    """Whether the named weights, run on the whole of both prompts, are fooled as the file says."""
    pair = json.loads(path.read_text(encoding="utf-8"))
    folder = path.parent / pair["model"]["path"]
    first, second = pair["prompts"]
    logits, _ = load_model(folder).decoder(torch.tensor(pair["prompts"]))
    answers = logits[:, -1].argmax(dim=-1).tolist()
    right = [RIGHT[pair["task"]["task"]](pair["task"], prompt) for prompt in (first, second)]
    changed = [position for position, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    return (
        file_sha256(folder / "model.safetensors") == pair["model"]["sha256"]
        and changed == [pair["changed"]["position"], *(one["position"] for one in pair["further"])]
        and right == pair["right_answers"]
        and answers == pair["model_answers"]
        and right[0] != right[1]
        and (answers[0] == answers[1] or all(a != r for a, r in zip(answers, right, strict=True)))
    )
