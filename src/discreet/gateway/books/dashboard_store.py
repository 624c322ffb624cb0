"""Dashboards as they are stored: saved questions on one page, each with its answer as it was released.

A tile keeps the released bytes, with their digest and the name of the version of the data that they are of. So it can
be shown for free as long as it is wanted, whatever the owner publishes later. Nothing is in it that was not charged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.randomness import random_integer
from discreet.exact.rational import LEDGER_UNIT, round_up
from discreet.gateway.books import audit
from discreet.gateway.books.approvals import DECIDING, storable
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.store import number_in_meta, set_number
from discreet.gateway.books.tokens import Caller
from discreet.gateway.settings import Settings
from discreet.ledger.stores.store import Execute
from discreet.ledger.texts.record import canonical

MOST_DASHBOARDS, MOST_TILES = 50, 24
"""Of one author, and on one dashboard."""
LONGEST_TITLE = 120
LARGEST_ANSWER, LARGEST_DASHBOARD = 2**18, 2**21
"""Bytes of an answer on a tile, and of all answers when a tile is added."""
BY_HAND, BY_RULE = "by hand", "rule"
DRAFT, WAITING, PUBLISHED = "draft", "waiting", "published"
_COLUMNS = "number, author, title, state, rule, units, spent, at"
_OF_TILE = "number, dashboard, place, title, sql, options, name, tries, receipt, version, answer, digest, at, refused"


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A page of tiles. `most` is what its rule may spend in all, and `spent` what it has set aside."""

    number: int
    author: str
    title: str
    state: str
    rule: str
    most: Fraction
    spent: Fraction
    at: float


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A saved question and its answer of one version. `refused` is the code of the error with which a rule stopped."""

    number: int
    dashboard: int
    place: int
    title: str
    sql: str
    options: dict[str, Any]
    name: str
    tries: int
    receipt: str
    version: str
    answer: bytes
    digest: str
    at: float
    refused: str

    @property
    def is_sound(self) -> bool:
        """Whether the answer is the one that was stored."""
        return hashlib.sha256(self.answer).hexdigest() == self.digest

    def key(self, version: str) -> str:
        """The key with which this tile is bought for a version: however often it is tried, it is charged once."""
        return f"tile {self.name} {self.tries} {hashlib.sha256(version.encode()).hexdigest()[:16]}"


def released(body: bytes) -> tuple[bytes, str]:
    """An answer as a tile keeps it, and its receipt: without what is about whoever bought it."""
    content = json.loads(body)
    for name in ("remaining", "replayed"):
        content.pop(name, None)
    receipt = content.get("receipt")
    if not isinstance(receipt, str):
        raise InvalidArgument(
            "Only an answer with a receipt can be a tile. This question needs no budget, and can be asked at any time.",
            code="gateway-tile",
        )
    text = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    if len(text) > LARGEST_ANSWER:
        raise InvalidArgument("This answer is too large for a tile. Ask for fewer groups.", code="gateway-tile")
    return text, receipt


# --- finding ------------------------------------------------------------------------------------------------


def all_dashboards(execute: Execute) -> list[Dashboard]:
    """Every dashboard, newest first."""
    return [_dashboard(row) for row in execute(f"SELECT {_COLUMNS} FROM dashboards ORDER BY number DESC")]


def find_dashboard(execute: Execute, caller: Caller, number: Any) -> Dashboard:
    """A dashboard that the caller may see. Others look as if they were not there."""
    whole = type(number) is int and 0 < number < 2**62
    found = execute(f"SELECT {_COLUMNS} FROM dashboards WHERE number = ?", number if whole else 0)
    known = _dashboard(found[0]) if found else None
    if known is None or not may_see(caller, known):
        raise InvalidArgument("There is no dashboard with this number.", code="gateway-not-found")
    return known


def may_see(caller: Caller, dashboard: Dashboard) -> bool:
    """Whether a caller sees a dashboard: its author, everybody once it is published, and who decides about that."""
    if dashboard.author == caller.account or dashboard.state == PUBLISHED:
        return True
    return dashboard.state == WAITING and decides(caller)


def decides(caller: Caller) -> bool:
    """Whether a caller decides what is published."""
    return caller.role in DECIDING and "manage" in caller.scopes


def may_publish(caller: Caller, dashboard: Dashboard, settings: Settings) -> bool:
    """Whether a caller publishes a dashboard: who decides, and with share = "everyone" its author."""
    return decides(caller) or (dashboard.author == caller.account and settings.share == "everyone")


def own_dashboard(execute: Execute, caller: Caller, number: Any) -> Dashboard:
    """A dashboard of the caller."""
    found = find_dashboard(execute, caller, number)
    if found.author != caller.account:
        raise NotAllowed("Only its author changes a dashboard.", code="gateway-role")
    return found


def tiles_of(execute: Execute, dashboard: int) -> list[Tile]:
    """The tiles of a dashboard, in their order."""
    found = execute(f"SELECT {_OF_TILE} FROM tiles WHERE dashboard = ? ORDER BY place, number", dashboard)
    return [_tile(row) for row in found]


def tiles_by_rule(execute: Execute, version: str) -> list[tuple[int, int]]:
    """The dashboards whose rule buys, each with its tiles that are of another version, by their numbers."""
    found = execute(
        "SELECT tiles.dashboard, tiles.number FROM tiles JOIN dashboards ON dashboards.number = tiles.dashboard "
        "WHERE dashboards.rule = ? AND tiles.version <> ? ORDER BY tiles.dashboard DESC, tiles.place, tiles.number",
        *(BY_RULE, version),
    )
    return [(int(dashboard), int(tile)) for dashboard, tile in found]


def content_of(execute: Execute, dashboard: Dashboard) -> str:
    """A digest of what a dashboard shows: who publishes it says what they saw."""
    found = execute(
        "SELECT number, title, digest FROM tiles WHERE dashboard = ? ORDER BY place, number", dashboard.number
    )
    return hashlib.sha256(canonical([dashboard.title, [list(one) for one in found]]).encode()).hexdigest()


def find_tile(execute: Execute, dashboard: Dashboard, number: Any) -> Tile:
    """A tile of a dashboard."""
    whole = type(number) is int and 0 < number < 2**62
    known = (dashboard.number, number if whole else 0)
    found = execute(f"SELECT {_OF_TILE} FROM tiles WHERE dashboard = ? AND number = ?", *known)
    if found:
        return _tile(found[0])
    raise InvalidArgument("There is no tile with this number on the dashboard.", code="gateway-not-found")


def check_title(title: Any) -> str:
    """A title of a dashboard or a tile."""
    text = storable(title).strip() if isinstance(title, str) else ""
    if not 0 < len(text) <= LONGEST_TITLE or not text.isprintable():
        raise InvalidArgument(
            f"A title is a text of 1 to {LONGEST_TITLE} characters on one line.", code="gateway-dashboard"
        )
    return text


# --- changing, inside a transaction -------------------------------------------------------------------------


def make_dashboard(execute: Execute, caller: Caller, title: str, now: float) -> int:
    """A new dashboard, which only its author sees."""
    own = execute("SELECT COUNT(*) FROM dashboards WHERE author = ?", caller.account)[0][0]
    if own >= MOST_DASHBOARDS:
        raise NotAllowed(
            f"An account has at most {MOST_DASHBOARDS} dashboards. Remove one of yours.", code="gateway-dashboard"
        )
    number = _next(execute, "dashboards")
    execute(
        f"INSERT INTO dashboards ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, '0', '0', ?)",
        *(number, caller.account, title, DRAFT, BY_HAND, microseconds(now)),
    )
    audit.append(execute, now, caller.account, "dashboard made", {"dashboard": number, "title": title})
    return number


def remove_dashboard(execute: Execute, dashboard: Dashboard) -> None:
    """Remove a dashboard and its tiles. What was charged stays charged, and the answers stay in the ledger."""
    forget_purchases(execute, dashboard)
    execute("DELETE FROM tiles WHERE dashboard = ?", dashboard.number)
    execute("DELETE FROM dashboards WHERE number = ?", dashboard.number)


def set_state(execute: Execute, dashboard: Dashboard, state: str) -> None:
    """Publish a dashboard, let it wait for that, or make it a draft."""
    execute("UPDATE dashboards SET state = ? WHERE number = ?", state, dashboard.number)


def shown_anew(execute: Execute, caller: Caller, dashboard: Dashboard, settings: Settings) -> None:
    """A published dashboard whose author shows something else on it waits again, if somebody else must agree."""
    if dashboard.state == PUBLISHED and not may_publish(caller, dashboard, settings):
        set_state(execute, dashboard, WAITING)


def add_tile(
    execute: Execute,
    dashboard: Dashboard,
    *,
    title: str,
    sql: str,
    options: Mapping[str, Any],
    answer: bytes,
    receipt: str,
    version: str,
    now: float,
) -> int:
    """A tile at the end of a dashboard, with an answer that was released."""
    present, last, size = execute(
        "SELECT COUNT(*), COALESCE(MAX(place), 0), COALESCE(SUM(LENGTH(answer)), 0) FROM tiles WHERE dashboard = ?",
        dashboard.number,
    )[0]
    if present >= MOST_TILES:
        raise NotAllowed(
            f"A dashboard has at most {MOST_TILES} tiles. Remove one, or make another dashboard.", code="gateway-tile"
        )
    if size + len(answer) > LARGEST_DASHBOARD:
        raise NotAllowed(
            "The answers of this dashboard are too large together. Ask for fewer groups, or make another dashboard.",
            code="gateway-tile",
        )
    number = _next(execute, "tiles")
    execute(
        f"INSERT INTO tiles ({_OF_TILE}) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, '')",
        *(number, dashboard.number, int(last) + 1, title, storable(sql), storable(canonical(dict(options)))),
        *(f"{random_integer(128):032x}", receipt, version, answer, hashlib.sha256(answer).hexdigest()),
        microseconds(now),
    )
    return number


def renew_tile(execute: Execute, tile: Tile, *, answer: bytes, receipt: str, version: str, now: float) -> None:
    """Show the answer of another version on a tile."""
    execute(
        "UPDATE tiles SET receipt = ?, version = ?, answer = ?, digest = ?, at = ?, refused = '' WHERE number = ?",
        *(receipt, version, answer, hashlib.sha256(answer).hexdigest(), microseconds(now), tile.number),
    )


def move_tile(execute: Execute, tile: Tile, steps: int) -> None:
    """Move a tile so many places towards the end, or the beginning if it is negative."""
    found = execute("SELECT number FROM tiles WHERE dashboard = ? ORDER BY place, number", tile.dashboard)
    order = [int(number) for (number,) in found]
    old = order.index(tile.number)
    order.insert(min(max(old + steps, 0), len(order) - 1), order.pop(old))
    for place, number in enumerate(order, 1):
        execute("UPDATE tiles SET place = ? WHERE number = ?", place, number)


def remove_tile(execute: Execute, tile: Tile) -> None:
    """Remove a tile. What its rule has spent stays spent."""
    execute("DELETE FROM tile_purchases WHERE tile = ?", tile.number)
    execute("DELETE FROM tiles WHERE number = ?", tile.number)


# --- what a rule may spend ----------------------------------------------------------------------------------


def is_set_aside(execute: Execute, tile: Tile, version: str) -> bool:
    """Whether a tile was counted for a version."""
    return bool(execute("SELECT 1 FROM tile_purchases WHERE tile = ? AND version = ?", tile.number, version))


def set_aside(execute: Execute, dashboard: Dashboard, tile: Tile, version: str, cost: Fraction) -> bool:
    """Count what a tile costs for a version against what the rule may spend, once. Whether it fits."""
    if is_set_aside(execute, tile, version):
        return True
    spent, units = round_up(dashboard.spent), round_up(cost)
    if spent + units > round_up(dashboard.most):
        return False
    execute("UPDATE dashboards SET spent = ? WHERE number = ?", str(spent + units), dashboard.number)
    execute("INSERT INTO tile_purchases (tile, version, units) VALUES (?, ?, ?)", tile.number, version, str(units))
    return True


def put_back(execute: Execute, dashboard: Dashboard, tile: Tile, version: str) -> None:
    """Uncount a purchase that was refused without a charge. A second call changes nothing."""
    found = execute("SELECT units FROM tile_purchases WHERE tile = ? AND version = ?", tile.number, version)
    if found:
        execute("DELETE FROM tile_purchases WHERE tile = ? AND version = ?", tile.number, version)
        spent = round_up(dashboard.spent) - int(found[0][0])
        execute("UPDATE dashboards SET spent = ? WHERE number = ?", str(spent), dashboard.number)


def forget_purchases(execute: Execute, dashboard: Dashboard) -> None:
    """Forget what was set aside for the tiles of a dashboard."""
    of = "(SELECT number FROM tiles WHERE dashboard = ?)"
    execute(f"DELETE FROM tile_purchases WHERE tile IN {of}", dashboard.number)


def _next(execute: Execute, name: str) -> int:
    """A number that was never used before."""
    number = number_in_meta(execute, name) + 1
    set_number(execute, name, number)
    return number


def _dashboard(row: tuple[Any, ...]) -> Dashboard:
    number, author, title, state, rule, units, spent, at = row
    most, used = Fraction(int(units), LEDGER_UNIT), Fraction(int(spent), LEDGER_UNIT)
    return Dashboard(
        number=number, author=author, title=title, state=state, rule=rule, most=most, spent=used, at=at / 1e6
    )


def _tile(row: tuple[Any, ...]) -> Tile:
    names = [name.strip() for name in _OF_TILE.split(",")]
    values = dict(zip(names, row, strict=True))
    values |= {"options": json.loads(values["options"]), "answer": bytes(values["answer"]), "at": values["at"] / 1e6}
    return Tile(**values)
