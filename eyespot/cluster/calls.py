"""Workers on a Ray cluster, and waiting for them: one that dies is started again, one that stays away is named.

A worker that is killed costs a retry and never an answer: Ray starts it anew and puts the same question again.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import ray

from eyespot.cluster.starting import Cluster
from eyespot.types import EyespotError

BEGIN = 300.0  # seconds in which a worker has loaded its models
ROOM = 5.0  # seconds until processors are free that other workers have just left
RETRIES = 20  # of one question, each time its worker died
PULSE = "pulse"


class PendingCall(NamedTuple):
    """A question put to a worker, where its answer will be, and how long the worker may give no sign of life."""

    worker: Any
    answer: Any
    patience: float = 60.0  # seconds
    begins: float = 0.0  # seconds that it may take to begin anew, where that is more


def hired(kind: type, cluster: Cluster, each: Iterable[Sequence[Any]], *lanes: str) -> list[Any]:
    """A worker for each tuple of arguments, on processors of its own; `lanes` are methods' threads beside the main one.

    `EyespotError` if one does not begin: for lack of room, or for what its own beginning ran into.
    """
    each = list(each)
    count = len(each)
    # `EyespotError` where Ray would wait for others to end, which may be for ever
    needed, until = {"CPU": count * cluster.cpus, "GPU": count * cluster.gpus}, time.monotonic() + ROOM
    while any(_free(kind) < amount - 1e-6 for kind, amount in needed.items()):
        if time.monotonic() > until:
            free = _free("CPU")
            raise EyespotError(f"the Ray cluster has {free:g} free processors now; ask for fewer --workers, or wait")
        time.sleep(0.05)
    options: dict[str, Any] = {
        "num_cpus": cluster.cpus,
        "num_gpus": cluster.gpus,
        "max_restarts": -1,
        "max_task_retries": RETRIES,
        "concurrency_groups": dict.fromkeys((PULSE, *lanes), 1),
    }
    actor: Any = ray.remote(**options)(kind)
    workers = [actor.remote(*arguments) for arguments in each]
    _refuse_lost(workers, f"{{}} of {len(each)} workers on Ray do not begin in {BEGIN:g} s; see ray status", BEGIN)
    return workers


def dismissed(workers: Iterable[Any]) -> None:
    """End these workers."""
    for worker in workers:
        ray.kill(worker)


def answered(calls: Sequence[PendingCall]) -> list[Any]:
    """The answers, in the order of the questions; what a worker refused is raised here as it was raised there."""
    awaited(calls)
    return [_got(one.answer) for one in calls]


def awaited(calls: Sequence[PendingCall]) -> None:
    """Return when all answers are there; `EyespotError` when a worker gives no sign of life."""
    waiting, patience = [one.answer for one in calls], max((one.patience for one in calls), default=0)
    while waiting:
        _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=patience, fetch_local=False)
        if waiting:
            silent = [one.worker for one in calls if one.answer in waiting]
            sentence = "{} of the workers on Ray are lost (a machine that is gone?); see ray status"
            _refuse_lost(silent, sentence, max(patience, *(one.begins for one in calls)))


def host() -> str:
    """The machine that this runs on."""
    return socket.gethostname()


def _free(kind: str) -> float:
    there: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
    return there.get(kind, 0.0)


def _refuse_lost(workers: Sequence[Any], sentence: str, patience: float) -> None:
    pulses = [worker.pulse.options(concurrency_group=PULSE).remote() for worker in workers]
    _, lost = ray.wait(pulses, num_returns=len(pulses), timeout=patience) if pulses else ([], [])
    if lost:
        raise EyespotError(sentence.format(len(lost)))
    for pulse in pulses:
        _got(pulse)


def _got(answer: Any) -> Any:
    try:
        return ray.get(answer)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        # What went wrong at a worker, as it would have gone wrong here
        if isinstance(cause, EyespotError | MemoryError):
            plain = cause
        else:
            what = " ".join(f"{type(cause).__name__}: {cause}".split())
            plain = EyespotError(f"a worker on Ray ran into {what}; see whether the same line runs without --ray")
        raise plain from error
    except ray.exceptions.RayActorError as error:
        # A worker's end: by what its own beginning refused, which Ray tells as text alone, or by too many
        # kills
        lines = str(error).strip().splitlines()
        reasons = [line.partition("EyespotError: ")[2] or line.partition("UsageError: ")[2] for line in lines]
        reason = next((line for line in reversed(reasons) if line), None)
        text = reason or f"a worker on Ray was lost more than {RETRIES} times in one piece of work; see the logs of Ray"
        raise EyespotError(text) from error
    except ray.exceptions.RayError as error:
        what = str(error).strip().splitlines()[0].rstrip(".")
        raise EyespotError(f"Ray lost an answer ({what}); run the same line again") from error
