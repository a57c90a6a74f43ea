"""Where records come from and whether each has become of something: `came + added = kept + dropped`, in every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eyespot.pipelines.outcomes import Added, Outcome, Record, Records, Unaccounted
from eyespot.pipelines.step_folder import StepCounts, StepWriter, id_of


class Account:
    """Writes the outcomes of a step and counts, apart from one another, what came, what was added and what stands."""

    def __init__(self, name: str, sheets: StepWriter) -> None:
        self._name, self._sheets = name, sheets
        self._came = self._added = 0

    def settle(self, record: Record, outcomes: list[Outcome]) -> None:
        """All outcomes of one record that came."""
        id = id_of(record)
        if not outcomes:
            raise Unaccounted(f"step {self._name} says nothing of the record {id!r}; let it keep or drop every one")
        self._came += 1
        self._added += len(outcomes) - 1
        for outcome in outcomes:
            self._sheets.write(outcome, id)

    def settle_all(self, records: Records, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """The outcomes of all records together, each handed on once it is written."""
        times = dict.fromkeys((id_of(record) for record in records), 0)
        self._came += len(times)
        for outcome in outcomes:
            if isinstance(outcome, Added):
                self._added += 1
                of = None
            else:
                origin_of = outcome.of or id_of(outcome.record)
                if origin_of not in times:
                    raise Unaccounted(
                        f"step {self._name} gave a record made from {origin_of!r}, which never came; say what "
                        "it is `of`, or use Added"
                    )
                self._added += times[origin_of] > 0
                times[origin_of] += 1
                of = origin_of
            self._sheets.write(outcome, of)
            yield outcome
        lost = [id for id, count in times.items() if not count]
        if lost:
            raise Unaccounted(
                f"step {self._name} says nothing of {len(lost):,} records, {lost[0]!r} the first; let it keep or drop "
                "every one"
            )

    def counts(self) -> StepCounts:
        """The balance; `Unaccounted` if it is none."""
        sheets = self._sheets
        counts = StepCounts(self._came, self._added, sheets.kept, dict(sorted(sheets.dropped.items())), sheets.failed)
        return counts.accounted(self._name)
