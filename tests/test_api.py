"""The public face of the package: which names it has, that they are documented, and what importing it costs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import eyespot
from eyespot import sample
from eyespot.types import EyespotError, Progress, Qrels, Run, UsageError
from eyespot.types.kinds import with_sentence
from tests.wording import raises

ROOT = Path(__file__).resolve().parent.parent
AGREED = {
    "eyespot": "Chain Collection EyespotError Hit Hits Qrels Query Run compare evaluate index "
    "load_adapter load_encoder load_index load_judge "
    "load_language_model open",
    "eyespot.metrics": "AP Hit NDCG Precision RR Recall evaluate parse",
    "eyespot.search": "Adapted Fused JudgeRerank LocalRerank Nearest QueryExpansion",
    "eyespot.indexes": "Exact",
    "eyespot.adapters.quari": "Hypernetwork load train",
    "eyespot.pipelines": "BatchStep MapStep SqlStep Step run",
    "eyespot.llms": "Budget",
    "eyespot.runs": "read_qrels read_run write_qrels write_run",
    "eyespot.gallery": "Gallery",
}
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in (ROOT / "eyespot").rglob("__init__.py")
    if "__all__" in path.read_text(encoding="utf-8")
)


def test_every_public_name_is_there_and_those_agreed_on_are_documented() -> None:
    pytest.importorskip("torch")
    for module in PACKAGES:
        room = import_module(module)
        assert [name for name in getattr(room, "__all__", ()) if not hasattr(room, name)] == []
        for name in AGREED.get(module, "").split():
            assert name in room.__all__
            about = inspect.getdoc(getattr(room, name)) or ""
            assert about.strip().endswith((".", ":", "…", ")")), f"{module}.{name} needs a docstring"
    assert AGREED.keys() <= {*PACKAGES}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'eyespot' has no attribute 'serach'"):
        eyespot.serach  # type: ignore[attr-defined]  # noqa: B018


def test_import_eyespot_loads_nothing_heavy() -> None:
    code = "import sys, eyespot; dir(eyespot); print(*sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    modules = child.stdout.split()

    assert {"numpy", "torch", "duckdb", "pyarrow", "PIL", "pydantic", "numba"} & set(modules) == set()
    assert [name for name in modules if name.startswith("eyespot")] == ["eyespot"]


QRELS = Qrels({"heron": {"a": 1, "b": 1}, "bridge": {"c": 1}})
GOOD = Run.from_orders({"heron": ["a", "b", "c"], "bridge": ["c", "a"]})
POOR = Run.from_orders({"heron": ["c", "a", "b"], "bridge": ["a", "c"]})


def test_evaluate_takes_a_preset_one_measure_or_several() -> None:
    from eyespot.metrics import AP, Hit

    assert eyespot.evaluate(GOOD, QRELS).means["AP@50"] == 1
    assert eyespot.evaluate(POOR, QRELS, "Hit@1").means == {"Hit@1": 0}
    assert eyespot.evaluate(GOOD, QRELS, [AP(2), Hit(1), "R@1"]).means == {"AP@2": 1, "Hit@1": 1, "R@1": 0.75}


def test_a_preset_brings_its_rules() -> None:
    assert eyespot.evaluate(GOOD, QRELS, "trec").rules.order == "trec"


def test_an_unknown_preset_or_measure_says_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"no measure 'inqire'.*nDCG.*; presets: inquire"):
        eyespot.evaluate(GOOD, QRELS, "inqire")


def test_compare_pairs_the_queries() -> None:
    paired = eyespot.compare(POOR, GOOD, QRELS, ["Hit@1"]).of("run", "Hit@1")

    assert (paired.difference, paired.wins, paired.losses, paired.means) == (1, 2, 0, (0, 1))


def first_relevant(ranking: list[str], grades: Any) -> int:
    return next((rank for rank, image in enumerate(ranking, 1) if grades.get(image)), 0)


def test_what_people_have_is_evaluated(tmp_path: Path) -> None:
    class Ones(eyespot.metrics.Measure):  # type: ignore[name-defined,misc]
        def score(self, found: Any) -> Any:
            return np.ones(len(found.lengths))

    (tmp_path / "run.json").write_text('{"q": {"b": 0.6, "a": 0.5}}')
    (tmp_path / "qrels.txt").write_text("q 0 a 1\n")
    run, grades = {"q": {"a": 0.5, "b": 0.6}}, {"q": {"a": 1}}

    assert eyespot.evaluate(run, grades, ["AP@10", first_relevant]).means == {"AP@10": 0.5, "first_relevant": 2}
    assert eyespot.evaluate(run, grades, Ones(10)).means == {"own@10": 1}
    assert eyespot.evaluate({"q": {"a": 0.1, "b": 0.9}, "p": {"c": 2}}, {"q": {"b": 1}}, "RR").means == {"RR": 1}
    with raises(UsageError):
        eyespot.evaluate({"q": [("a", 0.1), ("b", 0.9)]}, {"q": {"b": 1}}, "RR")
    assert eyespot.evaluate(tmp_path / "run.json", str(tmp_path / "qrels.txt"), "AP@10").means == {"AP@10": 0.5}
    assert eyespot.compare(run, {"q": {"a": 1, "b": 0}}, grades, first_relevant).pairs[0].difference == -1


def public_calls() -> list[tuple[str, Any]]:
    from scripts import api_page

    rooms = {module: import_module(module) for module in api_page.MODULES}
    names = [(module, name) for module, room in rooms.items() for name in room.__all__ if not name.startswith("_")]
    return [(f"{module}.{name}", getattr(rooms[module], name)) for module, name in names]


def signatures() -> Iterator[tuple[str, Any, list[inspect.Parameter]]]:
    """Public functions and classes that people make, with what they take."""
    for name, thing in public_calls():
        exempt = inspect.isabstract(thing) or getattr(thing, "_is_protocol", False) or thing is Any
        exempt = exempt or (isinstance(thing, type) and issubclass(thing, BaseException))
        if not exempt and (isinstance(thing, type) or inspect.isroutine(thing)):
            yield name, thing, list(inspect.signature(thing).parameters.values())


@pytest.mark.parametrize("bad", [5, "abc", None], ids=repr)
def test_a_public_name_says_what_it_takes(bad: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name with one value for all that it needs: it takes it, or says what it takes."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    raw = {}
    for name, thing, parameters in signatures():
        needed = [
            parameter
            for parameter in parameters
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        named = {one.name: bad for one in needed if one.kind is one.KEYWORD_ONLY}
        try:
            thing(*[bad] * (len(needed) - len(named)), **named)
        except EyespotError as error:
            assert "\n" not in str(error), name
        except ValueError:  # of a kind that it takes
            continue
        except (TypeError, AttributeError, LookupError) as error:
            raw[name] = error

    assert raw == {}


def test_a_place_is_a_path_or_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both end alike where nothing is there."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    tried, strict = [], set()
    for name, thing, parameters in signatures():
        places = [one for one in parameters if "Path" in str(one.annotation)]
        strict |= {name.rpartition(".")[2] for one in places if "str" not in str(one.annotation)}
        needed = [one for one in parameters if one.default is one.empty]
        if needed and all(one in places for one in needed):
            ends = []
            for place in ("nowhere", Path("nowhere")):
                try:
                    made = thing(*[place] * len(needed))
                    ends.append(str([*made] if isinstance(made, Iterator) else type(made)))
                except EyespotError as error:
                    ends.append(str(error))
            assert ends[0] == ends[1], name
            tried.append(name)

    assert strict <= {
        "Pair",
        "Price",
        "Recipe",
        "Records",
        "SqlStep",
        "StepResult",
        "Term",
        "TrainingResult",
        "View",
    }
    assert {"eyespot.open", "eyespot.index", "eyespot.load_adapter", "eyespot.runs.read_run"} <= set(tried)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: eyespot.load_encoder("starter").encode_texts([5]), "texts are a str or a list"),
        (lambda: eyespot.Chain(lambda queries, run: run)("abc"), "queries are a list"),
        (lambda: eyespot.load_judge(first_relevant, budget=5), "a judge is a name"),
        (lambda: eyespot.metrics.parse(5), "parse takes spelling as str, not 5 (int)"),
        (lambda: eyespot.metrics.parse(speling="AP"), "it takes spelling, norm, ties"),
        (lambda: eyespot.index("nowhere"), "there is nothing at"),
        (lambda: eyespot.open(sample.photos()), "if it holds photos: eyespot index"),
        (lambda: eyespot.load_encoder("starter").encode("a cat"), "words are embedded by encode_texts"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_what_is_taken(call: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        call()


def test_what_is_wrong_with_a_value_of_a_fitting_kind_stays_as_it_is() -> None:
    """An alias, as of an array or of a function, does not say what fits."""

    def call(tell: Progress, values: NDArray[Any]) -> None:
        tell("reading", 1, 2)

    with pytest.raises(TypeError, match="can only concatenate"):
        with_sentence(call)(lambda what, done, total: what + done, np.zeros(2))
    with pytest.raises(ValueError, match="could not convert"):
        eyespot.metrics.bootstrap(np.array(["a"]))


def test_a_name_whose_package_is_missing_says_what_to_install(child_env: dict[str, str]) -> None:
    code = "import sys; sys.modules['torch'] = None; from eyespot.adapters.quari import train"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=child_env)

    assert f"{EyespotError.__name__}: train needs the extra [torch]: " in failed.stderr


def test_the_page_is_what_the_script_writes() -> None:
    pytest.importorskip("torch")
    from scripts import api_page

    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), "run: python scripts/api_page.py"


def test_every_class_and_function_of_a_public_module_has_a_docstring() -> None:
    pytest.importorskip("torch")
    from scripts import api_page

    things = {
        f"{module}.{name}": getattr(import_module(module), name)
        for module in api_page.MODULES
        for name in getattr(import_module(module), "__all__", ())
    }
    bare = [name for name, thing in things.items() if inspect.isroutine(thing) and not thing.__doc__]
    # A dataclass or a named tuple without a docstring gets its signature for one.
    bare += [
        name
        for name, thing in things.items()
        if inspect.isclass(thing) and (thing.__doc__ or "(").startswith(("(", f"{thing.__name__}("))
    ]

    assert bare == []


# -- type checkers of people who install eyespot see its types ----------------------------------------------------


SCRIPT = """
import eyespot
from eyespot.adapters.quari import Hypernetwork, load, train
from eyespot.gallery import Gallery
from eyespot.indexes import Exact
from eyespot.llms import Budget
from eyespot.metrics import AP, evaluate, parse
from eyespot.pipelines import MapStep, Step, run
from eyespot.runs import read_qrels, read_run
from eyespot.search import Adapted, Fused, JudgeRerank, LocalRerank, Nearest, QueryExpansion

collection = eyespot.open(".eyespot")
found = collection.search("a heron", k=5)
qrels = read_qrels("qrels.txt")
reveal_type(collection)
reveal_type(found)
reveal_type(eyespot.Query.words("a heron"))
reveal_type(found[0])
reveal_type(found[:5])
reveal_type(collection.search(["a heron"]))
reveal_type(eyespot.evaluate(found, qrels, [AP(50), "nDCG@10"]))
reveal_type(eyespot.compare(read_run("other.txt"), found, qrels))
reveal_type(eyespot.load_encoder("starter"))
reveal_type(eyespot.load_index(eyespot.load_encoder("starter").encode_texts(["a heron"])))
reveal_type(eyespot.load_adapter("checkpoint"))
reveal_type(eyespot.load_judge("encoder:starter"))
for name in (Hypernetwork, load, train, Gallery, Exact, Budget, AP, evaluate, parse, MapStep, Step, run):
    print(name)
chain = eyespot.Chain(Nearest.of(collection), JudgeRerank.of(collection, "encoder:starter"))
reveal_type(chain([eyespot.Query.words("a heron")]))
reveal_type(eyespot.Chain(Fused(chain, chain)))
for stage in (Adapted, Fused, LocalRerank, QueryExpansion):
    print(stage)
reveal_type(eyespot.load_language_model("openai:gpt-5-mini"))
reveal_type(Hypernetwork)
reveal_type(train)
reveal_type(Gallery)
reveal_type(Exact)
reveal_type(Budget)
reveal_type(Step)
"""
MISSPELLED = """
import eyespot
import eyespot.metrics
from eyespot.gallery import Galery

eyespot.serach
eyespot.metrics.Recal
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What `mypy --strict` says of the scripts of somebody who installed eyespot."""
    folder = tmp_path_factory.mktemp("typed")
    venv.create(folder / "venv", with_pip=False)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "eyespot.pth").write_text(f"{ROOT}\n", encoding="utf-8")  # as an editable install does it
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "misspelled.py").write_text(MISSPELLED, encoding="utf-8")
    line = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(folder / "venv" / "bin" / "python")]
    quiet = ["--cache-dir", str(folder / "cache"), "--config-file", "", "script.py", "misspelled.py"]
    return subprocess.run([*line, *quiet], cwd=folder, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.long
def test_a_script_that_uses_eyespot_is_checked_against_its_types(messages: list[str]) -> None:
    """Without `py.typed` all of them would be `Any`, and mypy would say that stubs are missing."""
    revealed = [line for line in messages if line.startswith("script.py") and "Revealed type" in line]

    assert [line for line in messages if line.startswith("script.py") and line not in revealed] == []
    assert len(revealed) == SCRIPT.count("reveal_type")
    assert [line for line in revealed if "eyespot." not in line] == []


@pytest.mark.long
def test_a_misspelled_name_is_an_error(messages: list[str]) -> None:
    """Names are imported lazily, and a checker would take any name of a module with `__getattr__`."""
    errors = [line for line in messages if line.startswith("misspelled.py") and " error: " in line]

    assert [any(f'"{name}"' in line for line in errors) for name in ("Galery", "serach", "Recal")] == [True] * 3
