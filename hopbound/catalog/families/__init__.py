"""Every family of models that is understood, as data on top of the ways of writing a schedule."""

from hopbound.catalog.families.family import Family
from hopbound.catalog.families.fla import FLA_FAMILIES
from hopbound.catalog.families.latent import LATENT_FAMILIES
from hopbound.catalog.families.plain import PLAIN_FAMILIES
from hopbound.catalog.families.recurrent import RECURRENT_FAMILIES
from hopbound.catalog.families.remote import MAMBA_SSM, REMOTE_FAMILIES
from hopbound.catalog.families.windows import WINDOW_FAMILIES

__all__ = ["FAMILIES", "MAMBA_SSM", "Family"]

FAMILIES: dict[str, Family] = {
    model_type: family
    for families in (
        PLAIN_FAMILIES,
        WINDOW_FAMILIES,
        LATENT_FAMILIES,
        RECURRENT_FAMILIES,
        FLA_FAMILIES,
        REMOTE_FAMILIES,
    )
    for family in families
    for model_type in family.types
}
"""By `model_type`."""
