"""How much of what is written in pictures `index --ocr` finds, and what it costs.

Three parts: signs of the ReCoS generator, drawn with a seed, in three sizes and two turns; real writing in the sample
photos, noted by hand below; and the other sample photos, in which nothing is written. Quality, not time: a ratio is the
share of words that are missed, or of pictures without writing that get words. A word is found if `text_in_picture
ILIKE '%word%'` finds its picture. The last line is time: a photo's text against its vector of `starter`, both on one
thread; seconds stand on stderr.

    python bench/ocr.py [--quick] [--json]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from PIL import Image

from bench.harness import Command, Measurement, say
from eyespot import rooms, sample
from eyespot.types import TextReader

BOARDS = 20
SIZES = (1.0, 0.25, 0.125)  # the width of the sign's photo as a share of the picture
TURNS = (0, 15)  # degrees
TRIALS = 30  # photos that are timed
WRITTEN = {  # what a person reads in the sample photos, enlarged three times: words of two signs or more
    "measuringTape5": "CRAFTSMAN",
    "multimeter1": "UNI-T UT33C 050 HOLD OFF 20M 200k COM CE",
    "multimeter2": "VOLTCRAFT VC160 NPN PNP OFF hFE COM CE",
    "multimeter3": "2012 00.0 10A 1000 650",
    "volleyball": "OFFICIAL FIVB GAME BALL ALL WORLD COMPETITIONS",
    "weighingMachine": "SCALTEC FUNCTION",
}
NUMBERED = ("measuringTape", "screwDriver3")  # other photos with writing, too small or plain to note


def words_of(reader: TextReader, picture: Image.Image) -> str:
    from eyespot.gallery.texts import WORDS, text_facts

    return text_facts(reader.read(picture), reader.name).get(WORDS, "").casefold()


def missed(text: str, words: str) -> list[bool]:
    """For each word whether it is not in a text."""
    return [word.casefold() not in text for word in words.split()]


# -- drawn signs ------------------------------------------------------------------------------------------------


def signs(reader: TextReader, count: int) -> Iterator[Measurement]:
    from eyespot.curate.recos.drawing import boards
    from eyespot.curate.recos.subtasks.ocr import LetterBoards

    generator, chance = LetterBoards(), Random(1)
    facts = [generator.invent(chance) for _ in range(count)]
    painted = [(fact["shown"], boards.paint(fact["shown"].upper(), fact["painted"], chance)) for fact in facts]
    for size in SIZES:
        for turn in TURNS:
            found = [
                miss for text, board in painted for miss in missed(words_of(reader, set_in(board, size, turn)), text)
            ]
            yield Measurement.from_mean(f"signs missed, size {size:g}, turned {turn}", found, "words drawn")


def set_in(board: Image.Image, size: float, turn: int) -> Image.Image:
    """The photo of a sign, scaled and turned, in the middle of a grey wall of its own size."""
    wall = Image.new("RGB", board.size, (150, 150, 146))
    width, height = (round(side * size) for side in board.size)
    part = board.resize((width, height), Image.Resampling.LANCZOS)
    mask = Image.new("L", part.size, 255).rotate(turn, Image.Resampling.BICUBIC, expand=True)
    turned = part.rotate(turn, Image.Resampling.BICUBIC, expand=True)
    wall.paste(turned, ((wall.width - turned.width) // 2, (wall.height - turned.height) // 2), mask)
    return wall


# -- sample photos ----------------------------------------------------------------------------------------------


def photos(reader: TextReader, quick: bool) -> Iterator[Measurement]:
    places = {place.stem.partition("__")[2]: place for place in sorted(sample.photos().glob("*.jpg"))}
    found = [miss for name, words in WRITTEN.items() for miss in missed(words_of(reader, opened(places[name])), words)]
    yield Measurement.from_mean("words in sample photos missed", found, "words a person reads")
    plain = [place for name, place in places.items() if name not in WRITTEN and not name.startswith(NUMBERED)]
    wrong = [bool(words_of(reader, opened(place))) for place in plain[:: 10 if quick else 1]]
    yield Measurement.from_mean("sample photos without writing that get words", wrong, "photos without writing")


def opened(place: Path) -> Image.Image:
    from eyespot.photos.pictures import open_picture

    return open_picture(place.read_bytes()).image


# -- time -------------------------------------------------------------------------------------------------------


def seconds(reader: TextReader, trials: int) -> Measurement:
    """Process time for a photo, ours after the peer."""
    encoder = rooms.load("encoders", "starter")
    ours, ratios = [], []
    for place in sorted(sample.photos().glob("*.jpg"))[:trials]:
        picture = opened(place)
        begun = process_time()
        encoder.encode_pixels(encoder.read(picture)[None])
        middle = process_time()
        reader.read(picture)
        ours.append(process_time() - middle)
        ratios.append(ours[-1] / (middle - begun))
    say(f"seconds of process time for the text of a sample photo: {sorted(ours)[trials // 2]:.2f} (median of {trials})")
    return Measurement.from_trials("seconds for text", ratios, "its vector by starter")


def measure(options: Namespace) -> Iterator[Measurement]:
    reader = rooms.load("photos.ocr", "rapidocr", threads=1)
    say(f"read by {reader.name}")
    share = 10 if options.quick else 1
    yield from signs(reader, BOARDS // share)
    yield from photos(reader, options.quick)
    yield seconds(reader, TRIALS // share)


if __name__ == "__main__":
    Command(__doc__, threads=1).run(measure)
