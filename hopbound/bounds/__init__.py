"""What is impossible: finite-size bounds on hops, as certificates that another program can check."""

from hopbound.bounds.block_certificate import block_certificate, blocks_match_schedule
from hopbound.bounds.block_checker import check_blocks
from hopbound.bounds.certificate import Certificate, Sizes, matches_schedule, read_certificate
from hopbound.bounds.checker import CheckResult, check
from hopbound.bounds.inverse import Limit, limits
from hopbound.bounds.prove import prove
from hopbound.bounds.thresholds import paper_threshold
from hopbound.bounds.verdict import Verdict

__all__ = [
    "Certificate",
    "CheckResult",
    "Limit",
    "Sizes",
    "Verdict",
    "block_certificate",
    "blocks_match_schedule",
    "check",
    "check_blocks",
    "limits",
    "matches_schedule",
    "paper_threshold",
    "prove",
    "read_certificate",
]
