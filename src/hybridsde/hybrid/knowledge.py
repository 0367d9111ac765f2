"""What is known of a drift beside its equations, as it is declared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hybridsde._errors import suggest
from hybridsde.physics.expression import CONSTANTS, names
from hybridsde.physics.grammar import parse_formula

SIGNS = {"+": 1.0, "-": -1.0}
KINDS = ("conserved", "effects", "odd", "even", "decays")


@dataclass(frozen=True)
class Knowledge:
    """Properties of the whole drift, known and learned part together.

    - `conserved`: quantities of the states that the drift does not change, such as "x + y".
    - `effects`: the sign of couplings, {"y": {"x": "+", "u": "-"}}: more x never makes y fall
      faster, more u never makes it rise faster. Of a `positive` state it is about its relative
      rate, dy/y.
    - `odd`, `even`: by state, what the drift of it is odd or even in, {"v": ["x", "v"]}: with the
      signs of all these changed, it changes its sign too, or stays.
    - `decays`: states that come nearer to zero where all inputs are zero, whatever the other
      states are.

    The drift is held to it on the recorded rows and between them, to a few percent of its typical
    size; see `Constraints`.
    """

    conserved: Sequence[str] = ()
    effects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    odd: Mapping[str, Sequence[str]] = field(default_factory=dict)
    even: Mapping[str, Sequence[str]] = field(default_factory=dict)
    decays: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.kinds)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is declared, by name."""
        return tuple(kind for kind in KINDS if getattr(self, kind))

    def without(self, kind: str) -> "Knowledge":
        """All but one kind."""
        return replace(self, **{kind: type(getattr(self, kind))()})

    @property
    def raw_names(self) -> set[str]:
        """States whose zero means something here."""
        used = {one.name for text in self.conserved for one in names(parse_formula(text))}
        flipped = {one for sets in (self.odd, self.even) for of in sets.values() for one in of}
        return used | flipped | {*self.odd, *self.even, *self.decays}

    def sentences(self) -> Iterator[tuple[str, str]]:
        """Each property on its own: its kind, and what it says."""
        for text in self.conserved:
            yield "conserved", f"{text} is conserved"
        for state, signs in self.effects.items():
            for on, sign in signs.items():
                way = "up" if sign == "+" else "down"
                yield "effects", f"{on} drives {state} {way}"
        for kind in ("odd", "even"):
            for state, of in getattr(self, kind).items():
                yield kind, f"d{state} is {kind} in {', '.join(of)}"
        for state in self.decays:
            yield "decays", f"{state} decays without input"


def check_knowledge(
    known: Knowledge,
    states: tuple[str, ...],
    features: tuple[str, ...],
    one_sided: Sequence[str],
) -> None:
    """A `ValueError` that names what is wrong and the remedy."""
    for text in known.conserved:
        if not any(one.name in states for one in names(parse_formula(text))):
            raise ValueError(f"`conserved` is made of states, but {text!r} has none.")
        for one in names(parse_formula(text)):
            if one.name not in (*states, *CONSTANTS):
                raise ValueError(
                    f"`conserved` names {one.name!r} in {text!r}, but it is made of the states "
                    f"{', '.join(states)}." + suggest(one.name, states)
                )
    for state, signs in known.effects.items():
        _check_name(state, states, "effects")
        for on, sign in signs.items():
            _check_name(on, features, "effects")
            if sign not in SIGNS:
                raise ValueError(f"`effects` must be + or -, but that of {on} is {sign!r}.")
    for state in known.odd:
        if set(known.odd[state]) == set(known.even.get(state, ())):
            raise ValueError(
                f"`odd` and `even` say the same names of {state!r}, so d{state} would be zero. "
                "Leave one of them out."
            )
    for kind in ("odd", "even"):
        for state, of in getattr(known, kind).items():
            _check_name(state, states, kind)
            for one in of:
                _check_name(one, features, kind)
                if one in one_sided:
                    raise ValueError(
                        f"`{kind}` names {one!r}, but it is `positive` or has `bounds`: it cannot "
                        "be mirrored."
                    )
    for state in known.decays:
        _check_name(state, states, "decays")


def _check_name(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        raise ValueError(
            f"`{what}` names {name!r}, but there are {', '.join(known)}." + suggest(name, known)
        )
