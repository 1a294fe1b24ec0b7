"""How numbers are shown to people, in tables and pages alike."""

from math import inf, log2

PRIME = "'"
LONGEST_HELD = 64  # log2 of more tokens than any computer holds


def length_text(prompt_length: int | None, log2_prompt_length: float | None = None) -> str:
    """A prompt length: digits up to ten millions, a power of two beyond, `?` if nothing is known."""
    if prompt_length is not None and prompt_length < 10**7:
        return f"{prompt_length:,}"
    if log2_prompt_length is None and prompt_length is not None:
        log2_prompt_length = log2(prompt_length)
    if log2_prompt_length is None:
        return "?"
    return f"2^{log2_prompt_length:.1f}" if log2_prompt_length < 10**7 else f"2^({exponent_text(log2_prompt_length)})"


def exponent_text(log2_prompt_length: float) -> str:
    """The logarithm of a length: digits up to a billion, then a power of ten."""
    return f"{log2_prompt_length:,.0f}" if log2_prompt_length < 10**9 else f"{log2_prompt_length:.4g}"


def threshold_text(log2_prompt_length: float | None, source: str) -> str:
    """The length that an asymptotic theorem of the literature asks for; None: beyond floating point."""
    length = inf if log2_prompt_length is None else log2_prompt_length
    exponent = exponent_text(length) if length < inf else "a number beyond floating point"
    far = ": beyond any computer" if length > LONGEST_HELD else ""
    return f"log2 n >= {exponent} ({source}, constant taken as 1){far}"


def theorem_text(theorem: str) -> str:
    """A theorem by its name: `counting`, `A`, `B`, or a closed form of these (`A'`, `B''`)."""
    if theorem == "counting":
        return theorem
    return f"{'Corollary' if theorem.endswith(PRIME) else 'Theorem'} {theorem}"


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


def bytes_text(count: float) -> str:
    """A number of bytes: all digits below a thousand, binary units with three digits beyond."""
    if count < 1000:
        return f"{count:g} B"
    value, unit = float(count), 0
    while value >= 1000 and unit < 5:
        value, unit = value / 1024, unit + 1
    return f"{value:.{max(0, 2 - (value >= 10) - (value >= 100))}f} {['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}"
