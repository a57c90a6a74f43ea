"""Vision–language models on this machine: `transformers:ORG/NAME[@REVISION]` or `transformers:FOLDER`.

Qwen2-VL, Qwen2.5-VL, Qwen3-VL, LLaVA 1.5 and 1.6, PaliGemma, BLIP-2 and InstructBLIP are asked a question whose answer
is yes or no. The score is the share of yes in the first generated word (as INQUIRE re-ranks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from eyespot.judges._local.families import Asker, Inputs, family, written
from eyespot.judges._local.judging import LocalJudge
from eyespot.judges._local.settings import OPTIONS as LOCAL
from eyespot.judges._local.settings import LocalSettings
from eyespot.judges._local.source import ModelSource, loading, source
from eyespot.judges._local.yes_or_no import FirstWord, answer_tokens
from eyespot.judges._prompt import QUERY, described

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image

SPELLING = "transformers:ORG/NAME[@REV]|FOLDER"
KIND = "local model"
OFFLINE = "once fetched"
NEEDS = "the extra [torch]; weights from the model hub or a folder"
OPTIONS = LOCAL


def load(rest: str, **options: Any) -> LocalJudge:
    """A vision–language model as a judge; options as in `Settings` (wording, device, dtype, batch, read).

    The weights are loaded when the first pair is judged. Code that a repository brings is not run.
    Raises: UsageError if the model is of another family, EyespotError if it cannot be had.
    """
    settings, model = LocalSettings.of(options), source("transformers", rest)
    asker = family(model.name, model.config["model_type"])
    wording, ask = settings.wording, settings.wording.ask
    if wording.exact:
        asker, ask = written(wording.turns.replace(QUERY, "{}")), described
    return LocalJudge(model.name, wording.digest, ask, partial(_opened, model, asker, settings), settings)


def _opened(model: ModelSource, asker: Asker, settings: LocalSettings) -> YesOrNo:
    from transformers import AutoModelForImageTextToText

    from eyespot.judges._local.loaded import model_of, processor_of

    with loading(model.name):
        folder = model.folder()
        processor = processor_of(folder)
        network = model_of(AutoModelForImageTextToText, folder, settings)
        answers = FirstWord(*answer_tokens(processor.tokenizer, settings.wording))
        return YesOrNo(network, processor, asker, settings.wording.system, answers)


@dataclass
class YesOrNo:
    """A loaded model that is asked questions about pictures."""

    model: Any
    processor: Any
    asker: Asker
    system: str
    answers: FirstWord

    def __call__(self, texts: Sequence[str], pictures: Sequence[Image]) -> NDArray[np.float64]:
        """The share of yes in the first word of each answer, (n,)."""
        questions = []
        for text in texts:
            harmless_text = text
            # A query that spells one of the model's control tokens must not act as one
            for token in self.processor.tokenizer.all_special_tokens:
                harmless_text = harmless_text.replace(token, " ")
            questions.append(harmless_text)
        return self.answers.probabilities(self.first_word(self.asker(self.processor, self.system, questions, pictures)))

    def first_word(self, inputs: Inputs) -> torch.Tensor:
        """The logits of the first generated token, (n, vocabulary)."""
        import torch

        from eyespot.judges._local.loaded import on_device

        wanted = {"max_new_tokens": 1, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
        with torch.inference_mode():
            logits: torch.Tensor = self.model.generate(**on_device(inputs, self.model), **wanted).logits[0]
        return logits

    @property
    def notes(self) -> list[str]:
        """Whether the model answers with yes and no at all."""
        return self.answers.notes
