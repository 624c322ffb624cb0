"""What a policy says about answers that follow from earlier ones."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class AnswerRules:
    """With `derived`, a question that earlier answers imply costs nothing, and others cost only what is missing. With
    `shared`, the answers of all accounts count, and not only those of the one that asks.
    """

    derived: bool = True
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("derived", "shared"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgument(f"{name} of [answers] must be true or false.", code="wrong-type")
        if self.shared and not self.derived:
            raise InvalidArgument(
                "shared of [answers] has no meaning without derived answers. Write derived = true, or remove shared.",
                code="conflicting-arguments",
            )
