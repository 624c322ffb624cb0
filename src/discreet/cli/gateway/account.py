"""`discreet account POLICY …`: the owner's day at a gateway. It works whether or not the gateway runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from discreet.cli.terminal.completion import policies
from discreet.cli.terminal.manual import manual
from discreet.cli.terminal.output import clean
from discreet.datasets.discovery import find_policy
from discreet.errors import DiscreetError, InvalidArgument

if TYPE_CHECKING:
    from discreet.datasets.policy import Policy
    from discreet.gateway.books.offices import Office
    from discreet.gateway.settings import Settings
    from discreet.ledger import Ledger


_WHOLE = ("id", "number", "at", "asked", "expires")
"""Columns of ids and times, which are copied: they stay on one line on a narrow terminal."""
_ALWAYS = ("suspend", "revoke", "tokens", "requests", "audit", "backup")
"""Verbs that need the gateway's own database alone. An owner in need must not have to correct a policy first."""


class PolicyFirst(TyperGroup):
    """Commands after a policy: `discreet account clinic.toml list`. Without one, the usual policy is meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the policy, unless the first word is a command."""
        return super().parse_args(ctx, ["", *args] if args and args[0] in self.commands else args)


class Role(StrEnum):
    """What an account may do."""

    owner = "owner"
    steward = "steward"
    auditor = "auditor"
    analyst = "analyst"
    viewer = "viewer"
    service = "service"


class Scope(StrEnum):
    """What a token may be used for."""

    ask = "ask"
    replay = "replay"
    explain = "explain"
    manage = "manage"
    metrics = "metrics"


Name = Annotated[str, typer.Argument(help="The name of the account.", show_default=False)]
NameOrAll = Annotated[
    str | None, typer.Argument(help="The name of the account. Without one, all are meant.", show_default=False)
]
Epsilon = Annotated[float | None, typer.Option(help="The ε that it may spend in all.", show_default=False)]
Delta = Annotated[
    float | None, typer.Option(help="The δ of its limit; by default that of the data set.", show_default=False)
]
Why = Annotated[str, typer.Option(help="The reason, for the record.", show_default=False)]
Comment = Annotated[str, typer.Option(help="The reason, for the audit.", show_default=False)]
Number = Annotated[int, typer.Argument(help="The number of the request.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print it for another program.")]


def account(
    ctx: typer.Context,
    policy: Annotated[
        str,
        typer.Argument(
            metavar="[POLICY]",
            help="The policy with the section \\[gateway] (*.toml). By default $DISCREET_POLICY, or discreet.toml in "
            "this folder or one above it.",
            autocompletion=policies,
            show_default=False,
        ),
    ],
) -> None:
    """Accounts, tokens and requests of a gateway, for the owner of the data.

    The gateway sees every change at once. Links and tokens are printed once, alone on standard output, and stored
    nowhere.

    Examples:
      $ discreet account clinic.toml open alice --epsilon 3
      $ discreet account clinic.toml token alice --expires 30d
      $ discreet account clinic.toml suspend alice
      $ discreet account clinic.toml list
    """
    ctx.obj = policy


def open_account(
    ctx: typer.Context,
    name: Name,
    epsilon: Epsilon = None,
    delta: Delta = None,
    role: Annotated[Role, typer.Option(help="What the account may do.")] = Role.analyst,
) -> None:
    """Open an account, and print a login link that works once, for a day.

    Analysts and services get a limit in the ledger, under that of the data set. Other roles ask nothing new.

    Examples:
      $ discreet account clinic.toml open alice --epsilon 3
      $ discreet account clinic.toml open sam --role steward
    """
    made = _do(ctx, "open", name=name, role=role.value, epsilon=epsilon, delta=delta)
    _print_secret(made["link"], f"{made['account']} logs in once with this link, until {made['expires']}:")
    _warn(made)


def link(ctx: typer.Context, name: Name) -> None:
    """Print a new login link for an account. Earlier links are no longer valid.

    Examples:
      $ discreet account clinic.toml link alice
    """
    made = _do(ctx, "link", name=name)
    _print_secret(made["link"], f"{made['account']} logs in once with this link, until {made['expires']}:")


def token(
    ctx: typer.Context,
    name: Name,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            help="What it may be used for; by default ask, replay and explain, as the role allows. May be repeated.",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[str, typer.Option(help="How long it is valid, such as 12h or 30d.")] = "90d",
    epsilon: Annotated[
        float | None,
        typer.Option(help="The ε that it may spend in all, below that of the account.", show_default=False),
    ] = None,
    label: Annotated[str, typer.Option("--name", help="What it is for, to recognize it in lists.")] = "token",
) -> None:
    """Make a token for an account, and print it: a bearer token for HTTP, and a password for psql.

    Examples:
      $ discreet account clinic.toml token alice
      $ discreet account clinic.toml token bi --scope replay --name dashboard
    """
    scopes = None if not scope else [one.value for one in scope]
    made = _do(ctx, "token", account=name, scopes=scopes, expires=expires, epsilon=epsilon, name=label)
    _print_secret(made["token"], f"The token {made['id']} of {made['account']}, valid until {made['expires']}:")


def suspend(ctx: typer.Context, name: NameOrAll = None) -> None:
    """Suspend an account at once. Without a name, stop all charged questions.

    Examples:
      $ discreet account clinic.toml suspend alice
      $ discreet account clinic.toml suspend
    """
    _do(ctx, "suspend", name=name)
    _say("All charged questions are stopped." if name is None else f"{name} is suspended.")


def resume(ctx: typer.Context, name: NameOrAll = None) -> None:
    """Resume an account. Without a name, allow charged questions again, and clear the count of late answers.

    Examples:
      $ discreet account clinic.toml resume alice
      $ discreet account clinic.toml resume
    """
    _do(ctx, "resume", name=name)
    _say("Charged questions are answered again." if name is None else f"{name} may go on.")


def raise_limit(
    ctx: typer.Context,
    name: Name,
    epsilon: Annotated[float, typer.Option(help="The new ε, in all.", show_default=False)],
    why: Why,
    delta: Delta = None,
) -> None:
    """Raise the limit of an account. What was spent stays spent.

    Examples:
      $ discreet account clinic.toml raise alice --epsilon 5 --why "study 2"
    """
    made = _do(ctx, "raise", name=name, epsilon=epsilon, delta=delta, why=why)
    _say(f"The limit of {name} is now {_limit(made)}.")
    _warn(made)


def renew(ctx: typer.Context, name: Name, why: Why, epsilon: Epsilon = None, delta: Delta = None) -> None:
    """Begin a new period of an account, with the same limit or another one.

    People who are in the data in both periods are protected by both limits together.

    Examples:
      $ discreet account clinic.toml renew alice --why "new patients"
    """
    made = _do(ctx, "renew", name=name, epsilon=epsilon, delta=delta, why=why)
    _say(f"The limit of {name} is now {_limit(made)}.")
    _warn(made)


def change_role(
    ctx: typer.Context,
    name: Name,
    role: Annotated[Role, typer.Argument(help="What the account may do from now on.", show_default=False)],
    epsilon: Epsilon = None,
    delta: Delta = None,
) -> None:
    """Change the role of an account. Its tokens lose what the new role does not allow.

    Examples:
      $ discreet account clinic.toml role alice viewer
    """
    _do(ctx, "role", name=name, role=role.value, epsilon=epsilon, delta=delta)
    _say(f"{name} has the role {role.value}.")


def revoke(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="NAME|ID", help="An account, or the id of a token.")],
) -> None:
    """Revoke a token at once, or all tokens and login links of an account.

    Examples:
      $ discreet account clinic.toml revoke 0123456789abcdef
      $ discreet account clinic.toml revoke alice
    """
    with _office(ctx, "revoke") as office:
        from discreet.gateway.books import tokens
        from discreet.gateway.books.offices import VERBS

        with office.store.read() as execute:
            key = "account" if tokens.token_row(execute, what) is None else "id"
        gone = VERBS["revoke"](office, tokens.COMMAND_LINE, {key: what})["revoked"]
    _say(f"Revoked: {', '.join(gone) or 'nothing was valid'}.")


def rotate(
    ctx: typer.Context,
    identity: Annotated[str, typer.Argument(metavar="ID", help="The id of the token.", show_default=False)],
) -> None:
    """Give a token a new secret, and print it. The old one is no longer valid.

    Examples:
      $ discreet account clinic.toml rotate 0123456789abcdef
    """
    made = _do(ctx, "rotate", id=identity)
    _print_secret(made["token"], f"The token {made['id']} of {made['account']}, valid until {made['expires']}:")


def requests(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the questions that wait for a second person, and those that were decided.

    Examples:
      $ discreet account clinic.toml requests
    """
    found = _do(ctx, "requests")["requests"]
    shown = [
        [str(one["number"]), one["state"], one["account"], f"{one['epsilon']:g}", one["at"], one["sql"]]
        for one in found
    ]
    _print(found, ("number", "state", "account", "ε", "asked", "question"), shown, as_json)


def approve(ctx: typer.Context, number: Number, why: Comment = "") -> None:
    """Approve a question. It can then be asked once.

    Examples:
      $ discreet account clinic.toml approve 7 --why "agreed with the board"
    """
    found = _do(ctx, "decide", number=number, decision="approve", why=why)
    _say(f"Approved: {found['account']} may ask it once, with ε = {found['epsilon']:g}.")


def refuse(ctx: typer.Context, number: Number, why: Comment = "") -> None:
    """Refuse a question.

    Examples:
      $ discreet account clinic.toml refuse 7 --why "ask for fewer columns"
    """
    _do(ctx, "decide", number=number, decision="refuse", why=why)
    _say("Refused.")


def list_accounts(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List all accounts with what is left of their limits, and what you should know.

    Examples:
      $ discreet account clinic.toml list
      $ discreet account clinic.toml list --json
    """
    found = _do(ctx, "accounts")
    shown = [
        [
            *(one["name"], one["role"], "suspended" if one["suspended"] else "", _limit(one)),
            *(_limit(one, "remaining"), str(one["tokens"]), one["alert"] or ""),
        ]
        for one in found["accounts"]
    ]
    _print(found, ("name", "role", "state", "limit", "remaining", "tokens", "alert"), shown, as_json)
    if not as_json:
        late = found["late"]
        _say(f"Late answers: {late['count']}, allowed: {late['allowed']}. Time has told at most {late['bits']:g} bits.")
        if late["count"]:
            _say("So that the next ones are ready in time, write a longer answer_after: discreet serve … --calibrate")
        resume = f"discreet account {ctx.obj or find_policy()} resume"
        stopped = f"All charged questions are stopped. When you have looked: {resume}"
        for alert in (found["alert"], stopped if found["stopped"] else None):
            if alert:
                _say(alert)


def list_tokens(
    ctx: typer.Context,
    name: NameOrAll = None,
    as_json: AsJson = False,
) -> None:
    """List the tokens of an account, or all of them. Their secrets are not known here.

    Examples:
      $ discreet account clinic.toml tokens alice
    """
    found = _do(ctx, "tokens", account=name)["tokens"]
    shown = [
        [
            *(one["id"], one["account"], one["name"], " ".join(one["scopes"]), one["expires"]),
            *("revoked" if one["revoked"] else "", "" if one["epsilon"] is None else f"{one['epsilon']:g}"),
        ]
        for one in found
    ]
    _print(found, ("id", "account", "name", "scopes", "expires", "state", "ε"), shown, as_json)


def show_audit(
    ctx: typer.Context,
    last: Annotated[int, typer.Option(help="How many of the last lines to show.", min=1, max=1000)] = 20,
    verify: Annotated[bool, typer.Option("--verify", help="Check the chain of all lines instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the last lines of the audit, or check all of them.

    Examples:
      $ discreet account clinic.toml audit --last 50
      $ discreet account clinic.toml audit --verify
    """
    if verify:
        from discreet.gateway.books import audit

        with _office(ctx, "audit") as office:
            _say(f"The audit is whole: {audit.verify(office.store):,} lines checked.")
        return
    with _office(ctx, "audit") as office:
        from discreet.gateway.books.offices import VERBS
        from discreet.gateway.books.tokens import COMMAND_LINE

        count = VERBS["audit"](office, COMMAND_LINE, {})["count"]
        found = VERBS["audit"](office, COMMAND_LINE, {"first": max(1, count - last + 1)})["lines"]
    shown = [[str(one["number"]), one["at"], one["who"], one["what"], _details(one["details"])] for one in found]
    _print(found, ("number", "at", "who", "what", "details"), shown, as_json)


def backup(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="The new file to write.", show_default=False)],
) -> None:
    """Write a copy of the gateway's own database. The gateway may run meanwhile. The ledger is another file.

    Examples:
      $ discreet account clinic.toml backup clinic.gateway.backup
    """
    from discreet.gateway.books.store import GatewayStore

    _, settings = _settings(ctx, "backup")
    with GatewayStore(settings.store) as store:  # not as the vault's user: the file is the caller's
        store.backup(file)
    _say(f"The accounts, tokens, requests and the audit are in {file}. Only you can read it.")


app = typer.Typer(cls=PolicyFirst, no_args_is_help=True)
app.callback(help=manual(account))(account)
COMMANDS: dict[str, Callable[..., None]] = {
    "open": open_account,
    "link": link,
    "token": token,
    "tokens": list_tokens,
    "suspend": suspend,
    "resume": resume,
    "raise": raise_limit,
    "renew": renew,
    "role": change_role,
    "revoke": revoke,
    "rotate": rotate,
    "requests": requests,
    "approve": approve,
    "refuse": refuse,
    "list": list_accounts,
    "audit": show_audit,
    "backup": backup,
}
for word, command in COMMANDS.items():
    app.command(word, help=manual(command))(command)


def _settings(ctx: typer.Context, verb: str) -> tuple[Policy | None, Settings]:
    """The policy that was named, and the settings of its gateway. A policy with mistakes stops no verb that needs only
    the gateway's own database.
    """
    from discreet.gateway.settings import load_books, load_served

    path = ctx.obj or find_policy()
    try:
        return load_served(path)
    except DiscreetError as error:
        books = load_books(path) if verb in _ALWAYS else None
        if books is None:
            raise
        _say(f"Note: {error} The gateway goes on with the policy that it has read. This is about {books.store}:")
        return None, books


@contextmanager
def _office(ctx: typer.Context, verb: str) -> Iterator[Office]:
    """The office of the policy that was named, with the owner's view of its ledger."""
    from discreet.gateway.books.offices import Office
    from discreet.gateway.books.opening import open_ledger
    from discreet.gateway.books.store import GatewayStore
    from discreet.gateway.isolation import as_vault

    policy, settings = _settings(ctx, verb)
    with ExitStack() as stack:

        def opened() -> Ledger:
            assert policy is not None  # a verb in _ALWAYS uses none
            return stack.enter_context(closing(open_ledger(policy, settings, store, _ledger_of)))

        stack.enter_context(as_vault(policy, settings))  # files that root makes here belong to the vault
        store = stack.enter_context(GatewayStore(settings.store))
        yield Office(store=store, open_ledger=opened, settings=settings, now=time.time)


def _ledger_of(policy: Policy) -> Ledger:
    """The ledger of a policy, with its own terms if the policy was edited: the gateway goes on with them."""
    from discreet.datasets.ledgers import open_policy_ledger
    from discreet.ledger import Ledger

    try:
        return open_policy_ledger(policy)
    except InvalidArgument as error:
        if error.code not in ("ledger-other-terms", "ledger-other-unit"):
            raise
        _say(f"Note: {error}")
        return Ledger.open(policy.ledger)


def _do(ctx: typer.Context, verb: str, **arguments: Any) -> dict[str, Any]:
    """What the owner's verb returns."""
    with _office(ctx, verb) as office:
        from discreet.gateway.books.offices import VERBS
        from discreet.gateway.books.tokens import COMMAND_LINE

        return VERBS[verb](office, COMMAND_LINE, arguments)


def _details(details: dict[str, Any]) -> str:
    """What else a line of the audit says, with an ε as people write it. --json has all of its digits."""
    shown = dict(details)
    if "epsilon" in shown:
        with suppress(TypeError, ValueError):
            shown["epsilon"] = f"{float(shown['epsilon']):.6g}"
    return json.dumps(shown, ensure_ascii=False)


def _limit(found: dict[str, Any], key: str = "limit") -> str:
    limit = found[key]
    if limit is None:
        return "nothing" if key == "remaining" and found["limit"] else ""
    return f"ε = {limit['epsilon']:g}" + (f", δ = {limit['delta']:g}" if limit.get("delta") else "")


def _print_secret(secret: str, about: str) -> None:
    _say(about)
    print(secret)


def _warn(made: dict[str, Any]) -> None:
    if "warning" in made:
        _say(f"Note: {made['warning']}")


def _say(text: str) -> None:
    print(clean(text), file=sys.stderr)


def _print(found: Any, heads: tuple[str, ...], rows: list[list[str]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold", no_wrap=head in _WHOLE)
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    Console(highlight=False).print(table)
