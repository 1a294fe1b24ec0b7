"""The two ways in which hopbound says no.

A user's mistake is an `InputError`: one line that names the field, the value and what was expected.
A file that does not hold what it claims is a `RejectedError`: one line with the reason.
"""

MAX_SHOWN = 400  # characters of a value in a message


class InputError(ValueError):
    """Wrong input: the command line turns it into one line and exit code 2.

    Args:
        field: name of the argument or of the place in the input.
        value: what was given.
        expected: what would have been right.
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(f"{field}: got {shortened(repr(value))}, expected {expected}")


def shortened(text: str) -> str:
    """The text, without its middle where it is long."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN // 2]} … {text[-MAX_SHOWN // 2 :]}"


class RejectedError(ValueError):
    """A file that was read but does not hold what it claims: exit code 1.

    Args:
        reason: what is wrong with it; text of the file may be part of it, so it is made one line that can be printed.
    """

    def __init__(self, reason: str) -> None:
        line = "".join(c if c.isprintable() else " " for c in reason)
        super().__init__(line if len(line) <= 2 * MAX_SHOWN else f"{line[: 2 * MAX_SHOWN]} …")
