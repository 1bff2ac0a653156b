"""Words of the Word Embedding Association Test as Caliskan, Bryson and Narayanan publish them.

Semantics derived automatically from language corpora contain human-like biases, Science 356, 2017,
183-186: table 1 for the effect sizes, with vectors of GloVe 840B, and the supplement for the words.
They are in lower case here, as most of GloVe's downloads have them.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple


class Published(NamedTuple):
    """A test: its effect size in the paper, and the words of X, Y, A and B."""

    effect_size: float
    sets: Dict[str, List[str]]


def _published(effect_size: float, x: str, y: str, a: str, b: str) -> Published:
    return Published(effect_size, {"x": x.split(), "y": y.split(), "a": a.split(), "b": b.split()})


_PLEASANT = """caress freedom health love peace cheer friend heaven loyal pleasure diamond gentle
honest lucky rainbow diploma gift honor miracle sunrise family happy laughter paradise
vacation"""
_UNPLEASANT = """abuse crash filth murder sickness accident death grief poison stink assault
disaster hatred pollute tragedy divorce jail poverty ugly cancer kill rotten vomit agony prison"""

PUBLISHED = {
    "flowers and insects": _published(
        1.50,
        """aster clover hyacinth marigold poppy azalea crocus iris orchid rose bluebell daffodil
        lilac pansy tulip buttercup daisy lily peony violet carnation gladiola magnolia petunia
        zinnia""",
        """ant caterpillar flea locust spider bedbug centipede fly maggot tarantula bee cockroach
        gnat mosquito termite beetle cricket hornet moth wasp blackfly dragonfly horsefly roach
        weevil""",
        _PLEASANT,
        _UNPLEASANT,
    ),
    "instruments and weapons": _published(
        1.53,
        """bagpipe cello guitar lute trombone banjo clarinet harmonica mandolin trumpet bassoon drum
        harp oboe tuba bell fiddle harpsichord piano viola bongo flute horn saxophone violin""",
        """arrow club gun missile spear axe dagger harpoon pistol sword blade dynamite hatchet rifle
        tank bomb firearm knife shotgun teargas cannon grenade mace slingshot whip""",
        _PLEASANT,
        _UNPLEASANT,
    ),
    "mathematics and arts": _published(
        1.06,
        "math algebra geometry calculus equations computation numbers addition",
        "poetry art dance literature novel symphony drama sculpture",
        "male man boy brother he him his son",
        "female woman girl sister she her hers daughter",
    ),
    "science and arts": _published(
        1.24,
        "science technology physics chemistry einstein nasa experiment astronomy",
        "poetry art shakespeare dance literature novel symphony drama",
        "brother father uncle grandfather son he his him",
        "sister mother aunt grandmother daughter she hers her",
    ),
}
