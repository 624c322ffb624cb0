"""Reading statements that hold no question: cursors, transactions, settings and prepared statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from discreet.gateway.wire.format.values import Refusal
from discreet.gateway.wire.text.statement import Move, Statement
from discreet.gateway.wire.text.texts import Words, is_quoted, kind_of


def _fetch(what: str) -> Callable[[Statement, Words], Statement]:
    def read(one: Statement, words: Words) -> Statement:
        move = Move()
        if word := words.take("NEXT", "PRIOR", "FIRST", "LAST"):
            move = {
                "NEXT": Move(),
                "PRIOR": Move("backward", 1),
                "FIRST": Move("absolute", 1),
                "LAST": Move("absolute", -1),
            }[word]
        elif word := words.take("ABSOLUTE", "RELATIVE"):
            move = Move(word.lower(), _whole(words))
        elif word := words.take("FORWARD", "BACKWARD"):
            many = 1 if words.next in ("FROM", "IN") or (len(words.left) == 1 and words.next != "ALL") else _many(words)
            move = Move(word.lower(), many)
        elif (words.next == "ALL" and len(words.left) > 1) or words.next == "-" or _is_number(words):
            move = Move("forward", _many(words))
        if move.how in ("forward", "backward") and move.count is not None and move.count < 0:
            move = Move("backward" if move.how == "forward" else "forward", -move.count)
        words.take("FROM", "IN")
        return replace(one, what=what, name=words.name(), given=move)

    return read


def _is_number(words: Words) -> bool:
    return not words.at_end and kind_of(words.tokens[words.place]) == "NUMBER"


def _many(words: Words) -> int | None:
    return None if words.take("ALL") else _whole(words)


def _whole(words: Words) -> int:
    sign = -1 if words.take("-") else 1
    if not _is_number(words) or not words.next.isdecimal() or len(words.next) > 18:
        words.fail()
    return sign * int(words.token().text)


def _close(one: Statement, words: Words) -> Statement:
    quoted = not words.at_end and is_quoted(words.tokens[words.place])
    name = words.name()
    return replace(one, what="close", name="" if name == "all" and not quoted else name)


# --- transactions -------------------------------------------------------------------------------------------


def _transaction(what: str) -> Callable[[Statement, Words], Statement]:
    def read(one: Statement, words: Words) -> Statement:
        if what == "begin":
            words.take("TRANSACTION", "WORK")
            words.place = len(words.tokens)  # an isolation level changes nothing
            return replace(one, what="begin")
        if words.take("PREPARED"):
            return replace(one, what="other", name="PREPARED TRANSACTION")
        words.take("TRANSACTION", "WORK")
        if what == "rollback" and words.take("TO"):
            words.take("SAVEPOINT")
            return replace(one, what="rollback to", name=words.name())
        if words.take("AND"):
            no = words.take("NO")
            words.need("CHAIN")
            return replace(one, what=what, given={"chain": not no})
        return replace(one, what=what)

    return read


def _start(one: Statement, words: Words) -> Statement:
    words.need("TRANSACTION")
    return _transaction("begin")(one, words)


def _savepoint(one: Statement, words: Words) -> Statement:
    return replace(one, what="savepoint", name=words.name())


def _release(one: Statement, words: Words) -> Statement:
    words.take("SAVEPOINT")
    return replace(one, what="release", name=words.name())


# --- settings -----------------------------------------------------------------------------------------------


def _setting_name(words: Words) -> str:
    name = words.name()
    while words.take("."):
        name += f".{words.name()}"
    return name


def _set(one: Statement, words: Words) -> Statement:
    scope = words.take("SESSION", "LOCAL")
    if scope == "SESSION" and words.take("CHARACTERISTICS"):
        words.need("AS")
        words.need("TRANSACTION")
        return _characteristics(one, words, "SESSION")
    if words.take("TRANSACTION"):
        return _characteristics(one, words, "LOCAL")
    if words.next in ("ROLE", "AUTHORIZATION"):
        return replace(one, what="other", name=f"SET {words.next}")
    local = scope == "LOCAL"
    if words.take("TIME"):
        words.need("ZONE")
        value = None if words.take("DEFAULT", "LOCAL") else _value(words)
        return replace(one, what="set", name="timezone", given={"value": value, "local": local})
    if words.take("NAMES"):
        value = None if words.at_end or words.take("DEFAULT") else words.string()
        return replace(one, what="set", name="client_encoding", given={"value": value, "local": local})
    name = _setting_name(words)
    words.need("TO", "=")
    value = None if len(words.left) == 1 and words.take("DEFAULT") else _values(words)
    return replace(one, what="set", name=name, given={"value": value, "local": local})


def _characteristics(one: Statement, words: Words, scope: str) -> Statement:
    """The level of isolation and the like. Nothing can be written, and nothing changes while it is read."""
    words.place = len(words.tokens)
    return replace(one, what="set", name="", given={"value": None, "local": scope == "LOCAL"})


def _values(words: Words) -> str:
    found = [_value(words)]
    while words.take(","):
        found.append(_value(words))
    return ", ".join(found)


def _value(words: Words) -> str:
    sign = words.take("-", "+")
    if words.at_end or words.next in (",", "(", ")", "="):
        words.fail()
    if words.take("."):  # .5 is a dot and a number
        return f"{sign.strip('+')}0.{words.token().text}"
    token = words.token()
    if kind_of(token) == "VAR" and words.next == "/":
        words.fail()
    return f"{sign.strip('+')}{token.text}"


def _show(one: Statement, words: Words) -> Statement:
    if len(words.left) == 1 and words.take("ALL"):
        return replace(one, what="show", name="")
    if words.take("TIME"):
        words.need("ZONE")
        return replace(one, what="show", name="timezone")
    if words.take("TRANSACTION"):
        words.need("ISOLATION")
        words.need("LEVEL")
        return replace(one, what="show", name="transaction_isolation")
    if words.take("SESSION"):
        words.need("AUTHORIZATION")
        return replace(one, what="show", name="session_authorization")
    return replace(one, what="show", name=_setting_name(words))


def _reset(one: Statement, words: Words) -> Statement:
    if len(words.left) == 1 and words.take("ALL"):
        return replace(one, what="reset", name="")
    if words.take("ROLE") or (words.next == "SESSION" and words.take("SESSION") and words.take("AUTHORIZATION")):
        return replace(one, what="set", name="", given={"value": None, "local": False})
    if words.take("TIME"):
        words.need("ZONE")
        return replace(one, what="reset", name="timezone")
    return replace(one, what="reset", name=_setting_name(words))


def _discard(one: Statement, words: Words) -> Statement:
    return replace(one, what="discard", name=words.need("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"))


def _execute(one: Statement, words: Words) -> Statement:
    name, values = words.name(), []
    if words.take("("):
        while True:
            values.append(_argument(words))
            if not words.take(","):
                break
        words.need(")")
    return replace(one, what="execute", name=name, given=values)


def _argument(words: Words) -> str | None:
    """A constant as text. None is NULL."""
    if words.take("NULL"):
        return None
    found = _value(words)
    if words.next not in (",", ")"):
        raise Refusal("EXECUTE takes constants only.", state="0A000", hint="Write EXECUTE p (1, 'Haifa').")
    return found


def _deallocate(one: Statement, words: Words) -> Statement:
    words.take("PREPARE")
    quoted = not words.at_end and is_quoted(words.tokens[words.place])
    name = words.name()
    return replace(one, what="deallocate", name="" if name == "all" and not quoted else name)


def _unlisten(one: Statement, words: Words) -> Statement:
    words.place = len(words.tokens)
    return replace(one, what="unlisten")


COMMANDS: dict[str, Callable[[Statement, Words], Statement]] = {
    "FETCH": _fetch("fetch"),
    "MOVE": _fetch("move"),
    "CLOSE": _close,
    "BEGIN": _transaction("begin"),
    "START": _start,
    "COMMIT": _transaction("commit"),
    "END": _transaction("commit"),
    "ROLLBACK": _transaction("rollback"),
    "ABORT": _transaction("rollback"),
    "SAVEPOINT": _savepoint,
    "RELEASE": _release,
    "SET": _set,
    "SHOW": _show,
    "RESET": _reset,
    "DISCARD": _discard,
    "EXECUTE": _execute,
    "DEALLOCATE": _deallocate,
    "UNLISTEN": _unlisten,
}
"""How statements are read that hold no other one, by their first word."""
