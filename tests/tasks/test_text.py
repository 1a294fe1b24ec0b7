"""Tasks as text: what is written is read back, and what is no task is refused in one line."""

import pytest

from hopbound.errors import InputError
from hopbound.tasks import FunctionComposition, format_task, parse_task


@pytest.mark.parametrize(
    "task",
    [
        FunctionComposition(1, 5),
        FunctionComposition(2, 3, (2,)),
        FunctionComposition(3, 2, (2, 3), values=(3, 2), order="easy", query="many"),
    ],
)
def test_a_task_is_read_back(task: FunctionComposition) -> None:
    assert parse_task(format_task(task)) == task


@pytest.mark.parametrize(
    "text", ["", "[", "none", "composition[hops=2", "composition[hop=2]", "composition[hops=1,m=3,m=3]", "composition"]
)
def test_what_is_no_task_is_one_line(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_task(text)
    assert refused.value.field == "task"
    assert "\n" not in str(refused.value)
