"""How numbers are shown to people, in tables and pages alike."""

from math import log2


def length_text(prompt_length: int | None, log2_prompt_length: float | None = None) -> str:
    """A prompt length: digits up to ten millions, a power of two beyond, `?` if nothing is known."""
    if prompt_length is not None and prompt_length < 10**7:
        return f"{prompt_length:,}"
    if log2_prompt_length is None and prompt_length is not None:
        log2_prompt_length = log2(prompt_length)
    return "?" if log2_prompt_length is None else f"2^{log2_prompt_length:.1f}"


def cell_lines(cell: dict) -> list[str]:
    """A cell of the hierarchy in one or two lines: where it is possible, from where on it is impossible."""
    lines = []
    possible, impossible = cell["possible"], cell["impossible"]
    if possible:
        at = f"n = {length_text(possible['prompt_length'])}"
        lines.append(f"possible: {possible['construction']}, {at}")
    if impossible:
        length = length_text(impossible["prompt_length"], impossible["log2_prompt_length"])
        lines.append(f"impossible from n = {length}")
    return lines or ["no claim"]
