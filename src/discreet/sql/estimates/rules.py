"""What a policy says about answers that follow from earlier ones."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class AnswerRules:
    """With `derived`, a question that earlier answers imply costs nothing, and others cost only what is missing. With
    `shared`, the answers of all accounts count, and not only those of the one that asks. With `wide`, a question is
    measured with the groups around it where this costs the same: only what was asked is shown, and later questions
    follow from the rest.
    """

    derived: bool = True
    shared: bool = False
    wide: bool = False

    def __post_init__(self) -> None:
        for name in ("derived", "shared", "wide"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgument(f"{name} of [answers] must be true or false.", code="wrong-type")
        for name in ("shared", "wide"):
            if getattr(self, name) and not self.derived:
                raise InvalidArgument(
                    f"{name} of [answers] has no meaning without derived answers. Write derived = true, or remove "
                    f"{name}.",
                    code="conflicting-arguments",
                )
