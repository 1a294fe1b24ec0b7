"""What a stack is: mixers with their sizes, layers, the schedule grammar, runs. Standard library only."""

from hopbound.architecture.mixer import Elements, Kind, MixerSpec, Precisions
from hopbound.architecture.model import Architecture, Layer, LayerBits, Runs, runs
from hopbound.architecture.parameters import mixer_parameters
from hopbound.architecture.schedule import format_names, format_schedule, parse_layers, parse_schedule
from hopbound.architecture.specs import ROWS, Defaults, Row, canonical_name, mixer_spec, spec_text

__all__ = [
    "ROWS",
    "Architecture",
    "Defaults",
    "Elements",
    "Kind",
    "Layer",
    "LayerBits",
    "MixerSpec",
    "Precisions",
    "Row",
    "Runs",
    "canonical_name",
    "format_names",
    "format_schedule",
    "mixer_parameters",
    "mixer_spec",
    "parse_layers",
    "parse_schedule",
    "runs",
    "spec_text",
]
