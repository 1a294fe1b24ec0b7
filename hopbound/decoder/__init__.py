"""The model: embedding by table or rule, layers of mixers, position-wise maps, readout; its folder on disk."""

from hopbound.decoder.codes import DigitField, PositionCode, ReadoutCode, SegmentCode, TokenCode, bit_length, signs
from hopbound.decoder.model import Block, Decoder, DecoderConfig, DecoderState, PointwiseMap

__all__ = [
    "Block",
    "Decoder",
    "DecoderConfig",
    "DecoderState",
    "DigitField",
    "PointwiseMap",
    "PositionCode",
    "ReadoutCode",
    "SegmentCode",
    "TokenCode",
    "bit_length",
    "signs",
]
