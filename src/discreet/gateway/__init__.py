"""A server for analysts who are not trusted: the vault has the data and decides, the desk is what they reach."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "RemoteAnswer": "remote_answer",
    "RemoteDatabase": "remote",
}

if TYPE_CHECKING:
    from discreet.gateway.remote import RemoteDatabase
    from discreet.gateway.remote_answer import RemoteAnswer
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "RemoteAnswer",
    "RemoteDatabase",
]
