"""Measures that are not ours, computed by ir-measures and the programs behind it: Bpref, infAP, RBP, ERR and others.

Their values are those of the program, with its order of equal scores; the definition names it. Queries and images go
there under numbers, in the order of their names: some of the programs take no other names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypeAlias

import numpy as np

from eyespot.extras import install_line, needed
from eyespot.metrics._aligned import Aligned
from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import Reals, RelevantHits
from eyespot.types import Qrels, Run, UsageError, refusing

Function: TypeAlias = Callable[..., Any]

PROGRAMS = {"pytrec_eval": "pytrec_eval-terrier", "cwl_eval": "cwl-eval"}  # the packages of providers
GRADES = 4  # gdeval's highest
# What the extra brings; ir-measures knows more where further programs are installed
OUTSIDE = {
    "Bpref": "how seldom judged images that are not relevant stand before relevant ones (trec_eval)",
    "ERR": "expected reciprocal rank; grades up to 4 (gdeval, in Perl)",
    "RBP": "rank-biased precision; p is the persistence (cwl_eval)",
    "infAP": "average precision inferred from a sample of judgements (trec_eval)",
}


@dataclass(frozen=True)
class OutsideMeasure(Measure):
    """A measure of ir-measures with its parameters there."""

    called: str = ""
    parameters: tuple[tuple[str, Any], ...] = ()
    provider: str = ""  # "": the first that computes it; "ir": so too, asked for by the prefix

    name: ClassVar[str] = "outside"
    says: ClassVar[str] = "a measure of ir-measures"
    needs_ids: ClassVar[bool] = True

    def __call__(self, rankings: Aligned) -> Reals:
        raise UsageError(f"{self} is computed from a run and its qrels; rankings without ids of images do not do")

    def score(self, found: RelevantHits) -> Reals:
        raise NotImplementedError(f"{self} needs a run and its qrels")

    def values(self, run: Run, qrels: Qrels, queries: Sequence[str]) -> Reals:
        """The value of each of these queries, all of them in the run and in the qrels, (q,)."""
        if qrels.grade.dtype.kind == "f":
            raise UsageError(f"{self} takes whole grades, and the qrels have others; leave it out")
        if self.called == "ERR" and qrels.grade.max(initial=0) > GRADES:
            raise UsageError(
                f"{self} takes grades up to {GRADES}, and the qrels have {qrels.grade.max()}; leave it out"
            )
        images = sorted({*run.images.tolist(), *qrels.images.tolist()})
        numbers = {image: f"{at:012}" for at, image in enumerate(images)}
        numbered = {query: str(at) for at, query in enumerate(queries)}
        judged = {numbered[q]: {numbers[image]: int(grade) for image, grade in qrels[q].items()} for q in queries}
        ranked = {numbered[q]: {numbers[hit.image]: float(hit.score) for hit in run[q]} for q in queries}
        values = np.zeros(len(queries))  # (q,)
        measure = _ir_measure(self.called, dict(self.parameters), self.cutoff)
        try:
            for metric in _provider(measure, self.provider).iter_calc([measure], judged, ranked):
                if metric.query_id in judged:
                    values[int(metric.query_id)] = metric.value
        except Exception as error:  # whatever the programs behind it raise
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(
                f"{_program(measure, self.provider)} cannot compute {self} here ({reason}); leave it out"
            ) from None
        return values

    @property
    def definition(self) -> dict[str, Any]:
        """The parameters there, and which program computes it."""
        measure = _ir_measure(self.called, dict(self.parameters), self.cutoff)
        named = {"measure": self.called, "cutoff": self.cutoff, "norm": None, "ties": None}
        return {**named, **dict(self.parameters), "program": _program(measure, self.provider)}

    def _spelled(self, shown: tuple[str, ...]) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        prefix = f"{self.provider}:" * bool(self.provider)
        return prefix + self.called + f"({inside})" * bool(inside) + ("" if self.cutoff is None else f"@{self.cutoff}")


@dataclass(frozen=True)
class FunctionMeasure(OutsideMeasure):
    """A measure that is a function of a ranking's images, best first, and of {image: grade} of its query."""

    function: Function = len

    def values(self, run: Run, qrels: Qrels, queries: Sequence[str]) -> Reals:
        """The value of each of these queries, (q,); `UsageError` for one that is not a number."""
        found = [self.function([hit.image for hit in run[query]], qrels[query]) for query in queries]
        with refusing(f"the function {self} gives a number for each query", found):
            return np.array([float(value) for value in found])

    @property
    def definition(self) -> dict[str, Any]:
        """The function and the module that has it."""
        return {"measure": str(self), "cutoff": None, "norm": None, "ties": None, "program": self.function.__module__}

    def _spelled(self, shown: tuple[str, ...]) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))


def outside(name: str, parameters: Mapping[str, Any], cutoff: int | None, provider: str = "") -> OutsideMeasure | None:
    """The measure of ir-measures that is called so, whatever its case; None where it has none.

    `provider` is one of ir-measures', or "ir" for the first that computes it. Raises `UsageError` without the extra,
    for parameters it does not take, and where no such program is here.
    """
    try:
        import ir_measures
    except ModuleNotFoundError:
        known = {each.casefold(): each for each in OUTSIDE}
        if name.casefold() not in known and not provider:
            return None
        raise UsageError(needed(f"the measure {known.get(name.casefold(), name)}", "ir_measures")) from None
    known = {each.casefold(): each for each in ir_measures.measures.registry}
    if name.casefold() not in known:
        return None
    called = ir_measures.measures.registry[known[name.casefold()]].NAME
    given = {"rel": 1, **parameters} if called == "RBP" else dict(parameters)
    measure = _ir_measure(called, given, cutoff)
    _provider(measure, provider)
    return OutsideMeasure(cutoff, called=called, parameters=tuple(sorted(given.items())), provider=provider)


def _ir_measure(called: str, parameters: dict[str, Any], cutoff: int | None) -> Any:
    """Their object; `UsageError` for parameters that it does not take."""
    import ir_measures

    given = parameters if cutoff is None else {**parameters, "cutoff": cutoff}
    kind = ir_measures.measures.registry[called]
    if strange := sorted(set(given) - set(kind.SUPPORTED_PARAMS)):
        there = ", ".join(kind.SUPPORTED_PARAMS) or "none"
        raise UsageError(f"{called} of ir-measures has no parameter {strange[0]!r}; it has: {there}")
    return kind(**given)


def _program(measure: Any, wanted: str) -> str:
    """ir-measures and the program behind it, with their versions."""
    name = _provider(measure, wanted).NAME
    return f"ir-measures {version('ir-measures')} ({name}{_version(PROGRAMS.get(name, name))})"


def _provider(measure: Any, wanted: str) -> Any:
    """The program behind ir-measures that computes it; `UsageError` where none is installed."""
    import ir_measures

    missing, providers = "", {one.NAME: one for one in ir_measures.DefaultPipeline.providers}
    if wanted not in ("", "ir", *providers):
        raise UsageError(f"no provider {wanted!r}; there are: ir (any of them), {', '.join(providers)}")
    for provider in [providers[wanted]] if wanted in providers else providers.values():
        try:
            fits = provider.supports(measure)
        except AssertionError:  # a parameter that is wanted is not given, or not of its kind
            break
        if fits and provider.is_available():
            return provider
        if fits:
            brought = provider.NAME in PROGRAMS  # by the extra
            missing = missing or (install_line("ir") if brought else str(provider.install_instructions()))
    if wanted in providers and not missing:
        raise UsageError(f"{wanted} does not compute {measure}; write ir: for any program that does")
    stated = f"state its parameters ({', '.join(measure.SUPPORTED_PARAMS)}), as in ERR@10 or RBP(p=0.5)"
    raise UsageError(f"ir-measures has no program here for {measure}; {f'get it: {missing}' if missing else stated}")


def _version(package: str) -> str:
    try:
        return f" {version(package)}"
    except PackageNotFoundError:  # a script that ir-measures brings
        return ""
