r"""A decoder as one ONNX graph, by torch's exporter: tokens int64 [batch, n] in, logits float [batch, answers] out.

The whole forward is traced, codes by rule included: digits of positions and tokens are integer operations in the graph.
The number of prompts is free, their length n is fixed. Two operations that ONNX does not have are written with those
that it has: digits `x >> j` as x / 2^j, which is the same for numbers from 0 on; and the inverse of a unit lower
triangular matrix I + N of c ≤ 64 rows, by which chunks of the delta rule divide, as Π_{j<6} (I + (-N)^{2^j}), since
N^c = 0.
"""

import contextlib
import copy
import io
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hopbound.decoder import Decoder
from hopbound.errors import InputError
from hopbound.mixers.chunks import CHUNK
from hopbound.tasks.answerer import AnswerFunction

DOUBLINGS = (CHUNK - 1).bit_length()


class _AtLastToken(nn.Module):
    """What is asked of a built model: the logits at the last token."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch answers"]:
        """The whole forward, its last row."""
        return self.decoder(tokens)[0][:, -1]


def write_onnx(decoder: Decoder, length: int, path: Path) -> None:
    """Write the graph for prompts of `length` tokens.

    Raises:
        InputError: an operation of a mixer has no form in ONNX.
    """
    module = _AtLastToken(copy.deepcopy(decoder).requires_grad_(False)).eval()
    example = torch.zeros(2, length, dtype=torch.int64)
    try:
        # What the exporter says of its own progress is nothing that the caller can act on.
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), _quiet("torch.onnx"):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                (example,),
                dynamo=True,
                dynamic_shapes={"tokens": {0: torch.export.Dim("batch")}},
                input_names=["tokens"],
                output_names=["logits"],
                custom_translation_table=_translations(),
                verbose=False,
            )
    except (torch.onnx.OnnxExporterError, RuntimeError) as error:
        mixers = sorted({str(mixer.spec.name) for block in decoder.each_block() for mixer in block.each_mixer()})
        raise InputError(
            "format", "onnx", f"mixers that can be traced, not {' '.join(mixers)} ({_why(error)})"
        ) from error
    assert program is not None
    program.save(path)


def onnx_answers(path: Path) -> AnswerFunction:
    """The graph, run by onnxruntime on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def answer(prompts: np.ndarray) -> np.ndarray:
        (logits,) = session.run(["logits"], {"tokens": prompts})
        return np.asarray(logits).argmax(axis=-1)

    return answer


def _translations() -> dict[Any, Any]:
    """Operations that the exporter does not know, with those that ONNX has."""
    from onnxscript import opset18

    op: Any = opset18

    def shifted(number: Any, bits: Any) -> Any:
        return op.Div(number, op.Pow(op.Constant(value_int=2), bits))

    def solved(matrix: Any, right: Any, upper: bool = False, left: bool = True, unitriangular: bool = False) -> Any:
        if upper or not left or not unitriangular:
            raise NotImplementedError("only unit lower triangular matrices on the left")
        power = op.Neg(op.Trilu(matrix, op.Constant(value_int=-1), upper=0))
        result = op.Add(right, op.MatMul(power, right))
        for _ in range(DOUBLINGS - 1):
            power = op.MatMul(power, power)
            result = op.Add(result, op.MatMul(power, result))
        return result

    aten = torch.ops.aten
    return {aten.__rshift__.Tensor: shifted, aten.linalg_solve_triangular.default: solved}


@contextlib.contextmanager
def _quiet(name: str) -> Any:
    """No log lines below errors from one library, for a while."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _why(error: BaseException) -> str:
    """The operation that is missing, from the innermost cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).partition(" Failure")[0].splitlines()[0][:160] if str(error) else type(error).__name__
