"""Models for other programs: ONNX, classes of transformers, plain tables; each is run beside the original."""

from hopbound.export.folder import FORMATS, Exported, export_model
from hopbound.export.plain import PlainLayer, PlainStack, plain_stack

__all__ = ["FORMATS", "Exported", "PlainLayer", "PlainStack", "export_model", "plain_stack"]
