"""Success@k: 1 if any relevant image stands in the first k, else 0: trec_eval's name of the same number as Hit@k."""

from typing import ClassVar

from eyespot.metrics.hit import Hit


class Success(Hit):
    """Whether any of the first k is relevant, under trec_eval's name."""

    name: ClassVar[str] = "Success"
    says: ClassVar[str] = "1 if any of the first k is relevant (trec_eval's success_k; equals Hit@k)"


load = Success
