"""What the planner's constructions are shown on: small sizes and large ones, and one step beyond a limit."""

from collections.abc import Mapping

from hopbound.constructions.construction import Example

# Small, so that all instances are asked, and large: prompts of thousands of tokens, of more than 10^5, of a million.
EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "C1": (
        Example(schedule="3*full[heads=1,head_dim=24]", task="composition[hops=2,m=3,n=1/,values=2/]"),
        Example(schedule="3*full[heads=1,head_dim=24]", task="composition[hops=2,m=1024,n=3/]"),
        Example(schedule="2*full[heads=1,head_dim=24]", task="composition[hops=1,m=1048576]"),
    ),
    "C2": (
        Example(
            schedule="linear[heads=1,head_dim=24] 2*full[heads=1,head_dim=24]", task="composition[hops=2,m=2,n=2/]"
        ),
        Example(
            schedule="conv[channels=24,kernel=2] 3*full[heads=1,head_dim=24]", task="composition[hops=3,m=8,n=8/8]"
        ),
        Example(schedule="gdn[heads=1,head_dim=24] full[heads=1,head_dim=24]", task="composition[hops=1,m=262144]"),
    ),
    "C3": (
        Example(schedule="2*delta[heads=1,head_dim=24] full[heads=1,head_dim=24]", task="composition[hops=2,m=2,n=2/]"),
        Example(
            schedule="2*linear[heads=1,head_dim=24] full[heads=1,head_dim=24]", task="composition[hops=2,m=24,n=64/]"
        ),
        Example(
            schedule="2*delta[heads=1,head_dim=24] full[heads=1,head_dim=24]", task="composition[hops=2,m=24,n=5000/]"
        ),
        Example(
            schedule="2*linear[heads=1,head_dim=16] full[heads=1,head_dim=16]", task="composition[hops=2,m=160,n=2/]"
        ),
        Example(
            schedule="2*linear[heads=1,head_dim=16] full[heads=1,head_dim=16]",
            task="composition[hops=2,m=161,n=2/]",
            fits=False,
        ),
    ),
    "U2": (
        Example(schedule="2*full[heads=2,head_dim=24]", task="composition[hops=2,m=2,n=2/,values=2/]"),
        Example(
            schedule="linear[heads=1,head_dim=24] 2*full[heads=2,head_dim=24]",
            task="composition[hops=3,m=2,n=1/2,values=2/2]",
        ),
        Example(
            schedule="conv[channels=24,kernel=2] 2*full[heads=4,kv_heads=2,head_dim=24]",
            task="composition[hops=3,m=10,n=2/4,values=4/500]",
        ),
        Example(
            schedule="linear[heads=1,head_dim=24] 2*full[heads=3,head_dim=24]",
            task="composition[hops=3,m=8,n=4/3,values=8/40000]",
        ),
        Example(
            schedule="linear[heads=1,head_dim=24] 2*full[heads=1,head_dim=24]",
            task="composition[hops=3,m=4,n=2/2,values=3/3]",
            fits=False,
        ),
    ),
    "U3": (
        Example(
            schedule="linear[heads=1,head_dim=24] full[heads=3,head_dim=24]",
            task="composition[hops=2,m=4,n=2/,values=2/]",
        ),
        Example(
            schedule="conv[channels=24,kernel=2] full[heads=9,kv_heads=3,head_dim=24] full[heads=1,head_dim=24]",
            task="composition[hops=3,m=200,n=5/7,values=8/100]",
        ),
        Example(
            schedule="linear[heads=1,head_dim=24] full[heads=2,head_dim=24]",
            task="composition[hops=2,m=4,n=2/,values=2/]",
            fits=False,
        ),
    ),
}
