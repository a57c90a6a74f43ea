"""The queries that a report of `eyespot eval` shows, and where their pictures lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eyespot.cli._eval_inputs import EvalOptions
from eyespot.cli.settings import gallery_here

if TYPE_CHECKING:
    from eyespot.benchmarks import Evaluation, GallerySearcher, Task
    from eyespot.reports.examples import Examples
    from eyespot.reports.moved import Picture
    from eyespot.reports.tables import Summary
    from eyespot.types import Run


def examples_for(
    options: EvalOptions, evaluation: Evaluation, beside: Sequence[Summary], searched: GallerySearcher | None
) -> Examples:
    """What to look at: by the run of this evaluation, and below it by those of the reports beside it."""
    from eyespot.html import checked_address
    from eyespot.reports.examples import Examples, examples_of
    from eyespot.reports.moved import shown_images

    page = checked_address(options.page)
    others = {
        str(summary["system"]): _runs_of(Path(place), evaluation)
        for summary, place in zip(beside, options.beside or (), strict=True)
    }
    groups = examples_of(evaluation, others)
    wanted = shown_images(section for group in groups for section in group.sections)
    tasks = [result.task for result in evaluation.results if result.task.way != "i2t"]
    return Examples(groups, _pictures(options, tasks, wanted, searched) if wanted else {}, page)


def _runs_of(place: Path, evaluation: Evaluation) -> dict[str, Run]:
    """The runs of a report by their tasks, as far as its folder still has them."""
    from eyespot.runs import read_run

    folder = place.expanduser() if place.is_dir() else place.expanduser().parent
    runs = {}
    for result in evaluation.results:
        name = "run.parquet" if len(evaluation.results) == 1 else f"run-{result.task.name}.parquet"
        if (folder / name).is_file():
            runs[result.task.name] = read_run(folder / name)
    return runs


def _pictures(
    options: EvalOptions, tasks: Sequence[Task], wanted: Sequence[str], searched: GallerySearcher | None
) -> dict[str, Picture]:
    """From the folder that is named, the gallery that was searched or is named or near, and the benchmark's folder."""
    from eyespot.reports.moved import from_gallery

    found = _in_folder(options.images, tasks, wanted) if options.images else {}
    if searched is not None:
        found = _searched(searched, tasks, wanted) | found
    elif options.gallery or (gallery_here(None) / "gallery.toml").is_file():
        found = from_gallery(gallery_here(options.gallery), wanted) | found
    lacking = [image for image in wanted if image not in found]
    return (_in_folder(options.data_folder, tasks, lacking) if lacking else {}) | found


def _searched(searched: GallerySearcher, tasks: Sequence[Task], wanted: Sequence[str]) -> dict[str, Picture]:
    """The pictures of the gallery that was searched, by the names under which the benchmark knows them."""
    from eyespot.reports.moved import GALLERY_ID, from_gallery

    ids: dict[str, str] = {}
    for task in tasks:
        ids = searched.ids_of(task, wanted) | ids
    by_id = from_gallery(searched.view.gallery.path, [GALLERY_ID + id for id in dict.fromkeys(ids.values())])
    return {name: by_id[GALLERY_ID + id] for name, id in ids.items() if GALLERY_ID + id in by_id}


def _in_folder(folder: Path, tasks: Sequence[Task], wanted: Sequence[str]) -> dict[str, Picture]:
    """The pictures of a folder, by their names or by the paths that the benchmark's files give them."""
    from eyespot.reports.moved import from_folder

    paths: dict[str, str] = {}
    for task in tasks:
        paths |= {name: str(path) for name in wanted if (path := task.image_facts.get(name, {}).get("path"))}
    there = from_folder(Path(folder).expanduser(), [*wanted, *paths.values()])
    places = {name: there.get(name) or there.get(paths.get(name, name)) for name in wanted}
    return {name: picture for name, picture in places.items() if picture is not None}
