"""Tickets, reports with tickets, and an issuer, for tests."""

from __future__ import annotations

from discreet.cli.shuffle.options import files_of
from discreet.shuffle.channel import admission, blind_rsa
from discreet.shuffle.channel.admission import TicketRequest
from discreet.shuffle.channel.client import Client
from discreet.shuffle.channel.issuer import Issuer, IssuerStore
from discreet.shuffle.channel.task import Task

from ..polls import EMPTY, Poll, signer


def ticket(task: Task, key: blind_rsa.PrivateKey | None = None) -> bytes:
    """A ticket of a task, signed by its issuer or with another key."""
    request = TicketRequest.made(task.issuer_key, task.hash)
    return request.signed(blind_rsa.blind_sign(key or signer(), request.blinded))


def upload(task: Task, own: bytes, choice: int = 0) -> tuple[bytes, bytes]:
    """A report with a ticket, as a device sends it."""
    return own, Client(task, own).envelope([choice, EMPTY])


def an_issuer(poll: Poll, *vouchers: str, at: str | None = None) -> Issuer:
    """The issuer of a poll, who knows these vouchers."""
    task = poll.task
    key = admission.load_key(files_of(poll.path).issuer_key, task.issuer_key)
    store = IssuerStore(at or str(files_of(poll.path).issuer_store), task.hash)
    return Issuer(task, key, store, vouchers)
