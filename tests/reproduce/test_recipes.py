"""Every recipe: its file is read, its commands name what eyespot has, its needs and the printed cells are accounted."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from eyespot import reproduce, rooms
from eyespot.benchmarks import Evaluation, benchmark, scored
from eyespot.cli import app
from eyespot.reports.folder import write
from eyespot.reproduce.comparison import COMPARABLE, TableCell, cells, sample_cells
from eyespot.reproduce.recipes import TableCommand, presences, read_table
from eyespot.reproduce.running import WORLDS, make_world
from eyespot.types import RankedImage, Run, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import raises
from tests.worlds.benchmarks import official_rerank

pytestmark = pytest.mark.usefixtures("without_figures")

NAMES = reproduce.names()
DOUBLED = (
    '[[steps]]\nname = "evaluate"\nrun = "eyespot eval rmir -e {encoder} -g {name} --out reports/one"\neach = true\n'
)
ONE_A_PAPER = ("inquire-2", "quari-2", "rmir-2", "recos-3")  # the others run each night


def test_every_table_has_a_recipe() -> None:
    assert set(NAMES) == {
        *("inquire-2", "inquire-3", "inquire-4", "inquire-5", "inquire-e"),
        *("quari-1a", "quari-1b", "quari-2", "quari-3a", "quari-3b", "quari-4"),
        *("ilias", "rmir-2", "recos-2", "recos-3"),
    }
    with raises(UsageError):
        reproduce.recipe("inquire-9")


@pytest.mark.long
@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_one_that_eyespot_takes(name: str, sample: bool) -> None:
    """Each command line is parsed by the command that it names; its encoders and judges are in their rooms."""
    commands = reproduce.recipe(name).every_command(sample)

    assert commands
    for command in commands:
        words = shlex.split(command.line)
        assert words[0] in (("eyespot",) if sample else ("eyespot", "tar", "git", "python")), command.line
        if words[0] != "eyespot":
            continue
        parse(words[1:])
        for option, room in (("-e", "encoders"), ("--rerank", "judges")):
            for one in (words[at + 1] for at, word in enumerate(words) if word == option):
                assert one.partition(":")[0] in rooms.names(room) or "@" in one, one


def parse(words: list[str]) -> None:
    """As click reads it; its error is the test's."""
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands"):
        found, words = found.commands[words[0]], words[1:]
    found.make_context("eyespot", list(words))


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_are_asked_for_are_those_of_a_command(name: str) -> None:
    """Each model of a row is listed, and nothing else is."""
    of_open_clip = {"timm/ViT-SO400M-14-SigLIP-384": "ViT-SO400M-14-SigLIP-384/webli"}
    of_open_clip |= {"apple/DFN5B-CLIP-ViT-H-14-378": "ViT-H-14-378-quickgelu/dfn5b"}
    of_open_clip |= {"openai/clip-vit-large-patch14-336": "ViT-L-14-336/openai"}
    of_open_clip |= {"timm/resnet50_clip.openai": "RN50/openai", "timm/resnet50x16_clip.openai": "RN50x16/openai"}
    of_open_clip |= {
        "apple/DFN2B-CLIP-ViT-B-16": "ViT-B-16/dfn2b",
        "timm/ViT-L-16-SigLIP-384": "ViT-L-16-SigLIP-384/webli",
    }
    of_open_clip |= {"apple/DFN2B-CLIP-ViT-L-14": "ViT-L-14-quickgelu/dfn2b"}
    recipe = reproduce.recipe(name)
    lines = [word for command in recipe.commands(False) for word in command.line.split()]

    ids = {one.hub: {one.hub, of_open_clip.get(one.hub, one.hub)} for one in recipe.weights}
    assert [hub for hub, names in ids.items() if not any(name in line for name in names for line in lines)] == []
    models = [one for one in lines if re.match(r"(open_clip|hf|transformers|mllm|hub):[^.]*/", one)]
    known = [name for names in ids.values() for name in names]
    assert [
        one
        for one in models
        if "tuned/" not in one and not any(name in one for name in known) and "datasets" not in one
    ] == []


def test_local_descriptors_that_re_rank_are_those_of_the_paper_and_a_step_makes_them() -> None:
    """QuARI's table 3a has Chamfer similarity and spatial verification of DINOv2's patches (section 5.2)."""
    lines = [command.line for command in reproduce.recipe("quari-3a").commands(False)]
    (made,) = (line.split() for line in lines if line.startswith("eyespot describe"))
    used = {word.partition("@") for line in lines for word in line.split() if word.startswith(("chamfer", "spatial"))}

    assert {one[0] for one in used} == {"chamfer", "spatial"}
    assert {one[2] for one in used} == {made[made.index("--with") + 1]} == {"dinov2:facebook/dinov2-base"}
    assert made[-4:] == ["--run", "reports/first/run-i2i.parquet", "--depth", "1000"]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_by_hand_is_run_by_its_name_and_advice_names_what_eyespot_takes(name: str) -> None:
    recipe = reproduce.recipe(name)
    advice = "; ".join([*recipe.missing.values(), *(one.how for one in recipe.data)])
    lines = re.findall(r"eyespot (?:index|build|eval|describe) [^;]*", advice)

    for system in (one.name for one in recipe.systems if one.by_hand):
        assert all(system not in one.systems for one in recipe.commands(False))
        assert any(system in one.systems for one in recipe.commands(False, [system]))
    for line in lines:
        parse(shlex.split(line)[1:])


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_line_reads_below_data_is_among_the_needs(name: str, tmp_path: Path) -> None:
    """It is data of the recipe, what a line fetches or makes, or what a row by hand says to put there."""
    recipe = reproduce.recipe(name)
    needed = [one.place for one in recipe.data] + [need.about.split(",")[0] for need in presences(recipe, tmp_path)]
    by_hand = " ".join(one.by_hand for one in recipe.systems)
    made: set[str] = set()
    for command in recipe.every_command(False):
        words = shlex.split(command.line)
        made |= {after for word, after in itertools.pairwise(words) if word == "--out"} | {command.makes}
        for place in re.findall(r"(?<![/\w])data/[\w./*-]+", command.line):
            there = any(fnmatch(one, place) or f"{one}/".startswith(f"{place}/") for one in needed)
            inside = any(fnmatch(place, one) or place.startswith(f"{one}/") for one in needed)
            assert there or inside or place in made or Path(place).name in by_hand, f"{place} of {command.line}"


@pytest.mark.parametrize("name", NAMES)
def test_every_printed_cell_is_accounted_for_and_needs_say_what_is_known(name: str, tmp_path: Path) -> None:
    """Without a report no cell is comparable, and each says why; no row is left without a step or a reason."""
    recipe = reproduce.recipe(name)

    found = cells(recipe, tmp_path)

    printed = [row for each in recipe.benchmarks for row in benchmark(each).printed() if row.source in recipe.sources]
    assert len(found) == len(printed) > 0
    assert all(cell.measured is None and cell.verdict != COMPARABLE for cell in found)
    assert not [cell.method for cell in found if "no step" in cell.verdict]
    assert {"machine", "hours", "disk", "money"} <= recipe.needs.keys() and recipe.world in WORLDS
    needs = presences(recipe, tmp_path)
    assert {need.kind for need in needs} >= {"data", "weights", "disk"}
    assert all(need.way for need in needs if not need.here)
    assert all(one.source or one.how for one in recipe.data)


def test_what_is_there_is_seen(tmp_path: Path) -> None:
    recipe = reproduce.recipe("inquire-2")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "inquire_annotations.csv").write_text("query_id\n")
    (tmp_path / "data" / "inquire_queries_test.csv").touch()  # a download that was cut

    here = {need.what: need.here for need in presences(recipe, tmp_path)}

    assert here["the relevant photos of each query"] and not here["200 queries"]


def test_a_new_table_is_one_file_of_known_keys(tmp_path: Path) -> None:
    text = 'title = "Mine"\nbenchmarks = ["rmir"]\nsources = []\n'
    steps = '[[systems]]\nmethod = "a"\nname = "a"\nencoder = "starter"\n'
    steps += '[[steps]]\nname = "index"\nrun = "eyespot index photos -g g -e {encoder}"\neach = true\n'
    (tmp_path / "mine.toml").write_text(text + steps)
    (tmp_path / "odd.toml").write_text(text + 'colour = "red"\n')

    assert read_table(tmp_path / "mine.toml").commands(sample=False) == [
        TableCommand("index a", "eyespot index photos -g g -e starter", "", "", ("a",))
    ]
    with raises(UsageError):
        read_table(tmp_path / "odd.toml")
    (tmp_path / "doubled.toml").write_text(text + steps + steps.split("[[steps]]")[0].replace('"a"', '"b"') + DOUBLED)
    with raises(UsageError):
        read_table(tmp_path / "doubled.toml")


def test_rows_are_chosen_with_what_they_read() -> None:
    """QuARI's table 3b re-ranks the first ranking, which is a row of its own."""
    recipe = reproduce.recipe("quari-3b")

    assert [one.name for one in recipe.rows(False, ["quari"])] == ["quari", "first"]
    assert [one.name for one in recipe.rows(False, skip=["first"])] == ["quari"]
    refuses("reproduce", "quari-3b", "--only", "quari", "--skip", "quari", "--dry-run")
    assert [one.name for one in reproduce.recipe("inquire-3").rows(False, ["best"])] == ["blip2", "best"]
    printed = {one.name: one.method for one in recipe.systems}
    assert recipe.rows(False, [printed["quari"].upper()]) == recipe.rows(False, ["Quari"])
    assert recipe.rows(False, skip=[printed["first"]]) == recipe.rows(False, skip=["first"])
    for wrong in ("best", "qari"):
        with raises(UsageError):
            recipe.commands(False, [wrong])
    lines = {one.line.rpartition("--out ")[2]: one.line for one in recipe.commands(False) if "eval" in one.line}
    assert "--adapt" not in lines["reports/first"] and "--run reports/first/run.parquet" in lines["reports/quari"]


@pytest.mark.long
def test_the_verb_lists_checks_and_prints(tmp_path: Path) -> None:
    listed = run_eyespot("reproduce", "list", cwd=tmp_path)
    checked = run_eyespot("reproduce", "quari-1a", "--check", "--json", "--work", tmp_path / "w", cwd=tmp_path)
    lines = run_eyespot("reproduce", "recos-3", "--dry-run", cwd=tmp_path)
    by_hand = run_eyespot("reproduce", "inquire-5", "--check", cwd=tmp_path).stdout

    assert [line.split()[0] for line in listed.stdout.splitlines()] == NAMES
    assert checked.returncode == 4
    assert {part["kind"] for part in json.loads(checked.stdout)["parts"]} >= {"data", "weights", "extra", "disk"}
    assert "git clone" in by_hand and "--only wildclip (download wildclip_vitb16_t1.pth" in by_hand
    assert lines.stdout.splitlines()[0] == "mkdir -p reproduce/recos-3 && cd reproduce/recos-3"
    assert list(tmp_path.iterdir()) == []


def test_a_table_whose_data_nobody_can_fetch_stops_before_it_begins(tmp_path: Path) -> None:
    done = run_eyespot("reproduce", "rmir-2", cwd=tmp_path)

    assert done.returncode == 4 and "RMIR, table 2" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_miniature_and_a_table_do_not_share_a_folder(tmp_path: Path) -> None:
    """Made-up queries must not stand where the table looks for its own, nor the other way round."""
    make_world("inquire", tmp_path / "w")
    (tmp_path / "own" / "data").mkdir(parents=True)

    make_world("inquire", tmp_path / "w")
    with raises(UsageError):
        make_world("rmir", tmp_path / "w")
    with raises(UsageError):
        make_world("inquire", tmp_path / "own")
    refuses("reproduce", "inquire-2", "--work", tmp_path / "w", cwd=tmp_path)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in ONE_A_PAPER else pytest.mark.slow) for name in NAMES]
)
def test_a_miniature_runs_to_its_table(name: str, tmp_path: Path) -> None:
    done = run_eyespot("reproduce", name, "--sample", "--json", "--work", tmp_path / "w", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    assert table["cells"] and all(cell["printed"] is None for cell in table["cells"]) and "sample" in table["note"]
    if name != "inquire-2":
        return
    again = run_eyespot("reproduce", name, "--sample", "--work", tmp_path / "w", cwd=tmp_path)
    assert again.returncode == 0 and "finished: eyespot eval" in again.stderr
    assert f"written to {tmp_path / 'w' / 'table.md'}" in again.stderr
    assert (tmp_path / "w" / "table.md").is_file()
    report = tmp_path / "as" / "reports" / "rn50"  # as if it were the report of a system of the paper
    report.parent.mkdir(parents=True)
    (tmp_path / "w" / "reports" / "starter").rename(report)
    (cell, *_) = (one for one in cells(reproduce.recipe(name), tmp_path / "as") if one.method.endswith("RN50"))
    assert cell.measured is None and "200" in cell.verdict  # a number of another pool stands in no cell


# -- our numbers beside the printed ones -------------------------------------------------------------------------------


QUERIES, CANDIDATES = 160, 100


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return official_rerank(tmp_path_factory.mktemp("rerank"))


def cells_of(data: Path, work: Path, queries: int, images: int) -> list[TableCell]:
    """The cells of a row of INQUIRE's table 5 after a report on the first queries and images."""
    made = benchmark("inquire-rerank")
    (task,) = made.tasks(data, "test")
    candidates = task.judged.candidates
    assert candidates is not None
    names = list(candidates)[:queries]
    rng = np.random.default_rng(0)
    orders = {name: [hit.image for hit in candidates[name]][:images] for name in names}
    run = Run(
        {name: [RankedImage(one, -at) for at, one in enumerate(rng.permutation(all))] for name, all in orders.items()}
    )
    judged = replace(task.judged, candidates=candidates.only(names)).only(names)
    if images < CANDIDATES:
        judged = replace(judged, candidates=run)
    evaluation = Evaluation(made, "test", "ours", [scored(replace(task, judged=judged), run)], {"eyespot": "0"})
    write(evaluation, work / "reports" / "clip-b-32")
    return [one for one in cells(reproduce.recipe("inquire-5"), work) if one.method == "CLIP ViT-B-32"]


@pytest.mark.long
def test_a_set_of_the_official_size_is_comparable(data: Path, tmp_path: Path) -> None:
    found = cells_of(data, tmp_path, QUERIES, CANDIDATES)

    lingo = [one for one in found if one.what in ("t2i, yes", "t2i, no")]  # the released files have no such column
    of_kind = [one for one in found if one not in lingo]
    assert len(lingo) == 2 and all(one.verdict != COMPARABLE for one in lingo)
    assert len(of_kind) == 4 and {one.verdict for one in of_kind} == {COMPARABLE}
    for one in of_kind:
        assert one.printed is not None and one.measured is not None and one.interval is not None
        assert one.interval[0] <= one.measured <= one.interval[1]


@pytest.mark.long
@pytest.mark.parametrize(("queries", "images"), [(QUERIES - 1, CANDIDATES), (QUERIES, CANDIDATES // 2)])
def test_a_smaller_set_is_not(queries: int, images: int, data: Path, tmp_path: Path) -> None:
    found = cells_of(data, tmp_path, queries, images)

    assert found and COMPARABLE not in {one.verdict for one in found}
    if images < CANDIDATES:  # of another pool: not even shown
        assert all(one.measured is None for one in found)


@pytest.mark.parametrize("name", ["quari-1a", "quari-4", "inquire-3"])
def test_no_two_rows_of_a_miniature_read_alike(name: str, tmp_path: Path) -> None:
    """Reports of one system differ by the list that they rank, or by the depth of the judge."""
    recipe = reproduce.recipe(name)
    for command in recipe.commands(sample=True):
        if not command.report:
            continue
        words = command.line.split()
        given = {one.strip("-"): words[words.index(one) + 1] for one in ("--rerank", "--depth") if one in words}
        task = {"task": "i2i", "measures": {"AP": {"mean": 0.5, "interval": [0.4, 0.6]}}}
        split = words[words.index("--split") + 1] if "--split" in words else "test"
        summary = {"benchmark": words[2], "system": "ours", "split": split, "tasks": [task]}
        summary |= {"made": {"arguments": given}}
        (tmp_path / command.report).mkdir(parents=True)
        (tmp_path / command.report / "summary.json").write_text(json.dumps(summary))

    rows = [cell[:4] for cell in sample_cells(recipe, tmp_path)]

    assert len(rows) == len({*rows}) > 1
