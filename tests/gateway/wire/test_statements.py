"""Statements are told apart by their tokens and trees, and never by what is quoted."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.gateway.wire.format.values import Copy, Refusal
from discreet.gateway.wire.text.statement import Move, Statement
from discreet.gateway.wire.text.statements import read_statements
from discreet.gateway.wire.text.texts import Edit, Edited, comments_in, tokens_of

from .wire_vault import NoCatalog


def read(text: str) -> list[Statement]:
    return read_statements(text, NoCatalog().answers)


def one(text: str) -> Statement:
    [found] = read(text)
    return found


KINDS = {
    "": "empty",
    "  -- nothing\n /* at all */": "empty",
    ";": "empty",
    "SELECT 1": "query",
    "select count(*) from visits;": "query",
    "WITH t AS (SELECT 1 AS a) SELECT a FROM t": "query",
    "VALUES (1), (2)": "query",
    "TABLE prices": "query",
    "(SELECT 1) UNION ALL SELECT 2": "query",
    "SELECT city, COUNT(*) FROM visits GROUP BY ALL": "query",
    "EXPLAIN SELECT 1": "explain",
    "EXPLAIN (FORMAT JSON, COSTS OFF) SELECT 1": "explain",
    "EXPLAIN VERBOSE (SELECT 1)": "explain",
    "EXPLAIN (SELECT 1)": "explain",
    "COPY (SELECT 1) TO STDOUT": "copy",
    "COPY prices TO STDOUT (FORMAT binary)": "copy",
    "copy public.prices (city) to stdout with csv header": "copy",
    "COPY visits FROM STDIN": "write",
    "COPY visits TO '/tmp/x'": "other",
    "COPY (SELECT 1) TO PROGRAM 'sh'": "other",
    "DECLARE c CURSOR FOR SELECT 1": "declare",
    'declare "SQL_CUR;1" no scroll cursor with hold for select 1': "declare",
    "FETCH c": "fetch",
    "MOVE ALL IN c": "move",
    "CLOSE ALL": "close",
    "BEGIN": "begin",
    "BEGIN TRANSACTION READ ONLY": "begin",
    "start transaction isolation level serializable": "begin",
    "COMMIT AND NO CHAIN": "commit",
    "END": "commit",
    "ABORT": "rollback",
    "ROLLBACK TO SAVEPOINT a": "rollback to",
    "SAVEPOINT a": "savepoint",
    "RELEASE a": "release",
    "COMMIT PREPARED 'x'": "other",
    "SET discreet.epsilon = .5": "set",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE": "set",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED": "set",
    "SET TIME ZONE 'UTC'": "set",
    "SET NAMES 'utf8'": "set",
    "SET ROLE olga": "other",
    "SHOW ALL": "show",
    "RESET ALL": "reset",
    "DISCARD ALL": "discard",
    "PREPARE p (int) AS SELECT $1": "prepare",
    "EXECUTE p (1, 'a', NULL, -2.5)": "execute",
    "DEALLOCATE ALL": "deallocate",
    "UNLISTEN *": "unlisten",
    "LISTEN x": "other",
    "DO $$ BEGIN PERFORM 1; END $$": "other",
    "INSERT INTO visits VALUES (1)": "write",
    "UPDATE visits SET cost = 0": "write",
    "DELETE FROM visits": "write",
    "MERGE INTO visits USING x ON true WHEN MATCHED THEN DELETE": "write",
    "TRUNCATE visits": "write",
    "CREATE TEMP TABLE x AS SELECT 1": "write",
    "DROP TABLE visits": "write",
    "GRANT ALL ON visits TO ana": "write",
    "VACUUM": "write",
    "SELECT 1 INTO x": "write",
    "SELECT 1 FOR UPDATE": "write",
    "WITH gone AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM gone": "write",
    "COPY (DELETE FROM visits RETURNING 1) TO STDOUT": "write",
}


@pytest.mark.parametrize(("text", "kind"), KINDS.items())
def test_kinds(text, kind):
    assert one(text).what == kind


SYNTAX = {
    "SELEC 1": 1,
    "SELECT COUNT(* FROM visits": 16,
    "SELECT 1; SELECT )": 18,
    "SET a": 6,
    "FETCH 1.5 FROM c": 7,
    "EXPLAIN": 8,
    "COPY (SELECT 1 TO STDOUT": 25,
    "DECLARE c CURSOR FOR INSERT INTO x VALUES (1)": 22,
    "1": 1,
    "BEGIN; )": 8,
    "DISCARD EVERYTHING": 9,
    "SHOW a b": 8,
}


@pytest.mark.parametrize(("text", "position"), SYNTAX.items())
def test_what_cannot_be_read_says_where(text, position):
    with pytest.raises(Refusal) as refused:
        read(text)
    assert (refused.value.state, refused.value.position) == ("42601", position)


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "SELECT /* a", "SELECT E'\\'", "SELECT 1\0"])
def test_what_has_no_end_is_refused(text):
    with pytest.raises(Refusal) as refused:
        read(text)
    assert refused.value.state == "42601"


def test_too_much_is_refused():
    for text, state in (
        ("SELECT '" + "a" * 100_000 + "'", "54000"),
        ("SELECT 1;" * 1100, "54000"),
        ("SELECT " + "NOT " * 5000 + "1", "54001"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "54001"),
        ("SELECT COUNT(*) FROM a" + " JOIN b" * 30, "54001"),
    ):
        with pytest.raises(Refusal) as refused:
            read(text)
        assert refused.value.state == state, text[:30]


def test_nothing_is_logged(caplog):
    for text in (
        "CREATE SECRET zq7canary",
        "SELECT 'zq7canary' FROM",
        "ALTER zq7canary",
        "WITH a AS (CALL zq7canary) SELECT 1",
    ):
        with contextlib.suppress(Refusal):
            read(text)
    assert "zq7canary" not in caplog.text


def test_several_statements_keep_their_comments():
    text = "/* a */ SELECT 1 /* b */; -- c\nSELECT 2 -- d\n; /* e */"
    assert [found.comments for found in read(text)] == [("a", "b"), ("c", "d")]
    assert one("EXPLAIN /* epsilon=1 */ SELECT 1 -- x").inner.comments == ("epsilon=1", "x")
    assert one("COPY (SELECT 1 /* a */) TO STDOUT /* b */").inner.comments == ("a", "b")
    assert one("SELECT /* a /* nested */ b */ 1").comments == ("a /* nested */ b",)
    assert one("SELECT '/* epsilon=1 */', $$-- x$$, \"/* y */\"").comments == ()


QUOTES = [
    lambda text: "'" + text.replace("'", "''") + "'",
    lambda text: '"' + text.replace('"', '""') + 'z"',
    lambda text: f"$q${text.replace('$', '')}$q$",
    lambda text: "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'",
    lambda text: "1 /* " + text.replace("*", "").replace("/", "") + " */",
    lambda text: "1 -- " + text.replace("\n", "").replace("\r", "") + "\n",  # both end a comment, as in PostgreSQL
]
TEMPTING = ["; DELETE FROM visits; ", "' OR 1=1 --", "/* epsilon=9 */", "FROM visits", "$1,$2", "$$", "\\", "*/", "\n"]


@given(
    content=st.one_of(st.sampled_from(TEMPTING), st.text(st.characters(exclude_characters="\0", codec="utf-8"))),
    quote=st.sampled_from(QUOTES),
)
def test_what_is_quoted_changes_nothing(content, quote):
    """Whatever is inside of quotes, it is one catalog statement without parameters."""
    [found] = read(f"SELECT {quote(content)} AS a")
    assert (found.what, found.of_catalog, found.parameters) == ("query", True, [])
    said = found.comments
    assert said == () or "/*" in quote("") or "--" in quote("")


@given(st.text(st.sampled_from("aE'\"$;-/* \n1(),\\"), max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        found = read(text)
    except Refusal:
        return
    assert all(isinstance(one, Statement) for one in found)


@given(st.text(st.sampled_from("a'\"$;-/* \n1,"), max_size=30))
def test_between_tokens_there_is_nothing_but_comments(text):
    """Otherwise a comment could be seen where there is none."""
    try:
        tokens = tokens_of(text)
    except Refusal:
        return
    left = text
    for token in reversed(tokens):
        left = left[: token.start] + " " + left[token.end + 1 :]
    for comment in comments_in(text, tokens, 0, len(text)):
        assert comment in left


def test_parameters_and_their_places():
    found = one("SELECT $1,$2 , a$3, '$4', $12::int FROM visits WHERE a<$1")
    assert [number for number, _, _ in found.parameters] == [1, 2, 12, 1]
    assert [found.text[start : end + 1] for _, start, end in found.parameters] == ["$1", "$2", "$12", "$1"]


@pytest.mark.parametrize(
    ("text", "move"),
    {
        "FETCH c": Move(),
        "FETCH FROM c": Move(),
        "FETCH NEXT IN c": Move(),
        "FETCH PRIOR c": Move("backward", 1),
        "FETCH FIRST FROM c": Move("absolute", 1),
        "FETCH LAST c": Move("absolute", -1),
        "FETCH ABSOLUTE -2 c": Move("absolute", -2),
        "FETCH RELATIVE 3 c": Move("relative", 3),
        "FETCH 100 IN c": Move("forward", 100),
        "FETCH -3 FROM c": Move("backward", 3),
        "FETCH ALL c": Move("forward", None),
        "FETCH FORWARD ALL IN c": Move("forward", None),
        "FETCH FORWARD c": Move("forward", 1),
        "FETCH FORWARD 5 FROM c": Move("forward", 5),
        "FETCH BACKWARD ALL c": Move("backward", None),
        "FETCH BACKWARD FROM c": Move("backward", 1),
        "FETCH BACKWARD -2 c": Move("forward", 2),
    }.items(),
)
def test_moves(text, move):
    found = one(text)
    assert (found.given, found.name) == (move, "c")


@pytest.mark.parametrize(
    ("said", "copy"),
    {
        "": Copy(),
        "BINARY": Copy("binary"),
        "WITH BINARY": Copy("binary"),
        "(FORMAT binary)": Copy("binary"),
        "(FORMAT text, DELIMITER '|', NULL 'none')": Copy(delimiter="|", null="none"),
        "WITH DELIMITER AS '|' NULL AS 'none'": Copy(delimiter="|", null="none"),
        "CSV": Copy("csv", delimiter=",", null=""),
        "WITH CSV HEADER QUOTE '''' FORCE QUOTE *": Copy("csv", True, ",", "", "'", "'"),
        "WITH (FORMAT 'csv', HEADER true, ENCODING 'UTF-8', FORCE_QUOTE (a, b))": Copy("csv", True, ",", ""),
        "(FORMAT csv, HEADER false, QUOTE '~', ESCAPE '\\')": Copy("csv", False, ",", "", "~", "\\"),
    }.items(),
)
def test_copy_in_old_and_new_words(said, copy):
    assert one(f"COPY (SELECT 1) TO STDOUT {said}").given == copy


@pytest.mark.parametrize("said", ["(FORMAT xml)", "(DELIMITER 'ab')", "(ENCODING 'LATIN1')", "(NOTHING 1)"])
def test_copy_that_cannot_be_told(said):
    with pytest.raises(Refusal) as refused:
        read(f"COPY (SELECT 1) TO STDOUT {said}")
    assert refused.value.state == "22023"


@given(st.data())
def test_places_in_a_changed_text_are_found_again(data):
    text = data.draw(st.text("abcdef", min_size=1, max_size=30))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    edits = [Edit(a, b, data.draw(st.text("XY", max_size=3))) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    before = data.draw(st.sampled_from(["", "ZZ"]))
    edited = Edited(text, 0, len(text), edits, before)
    places = [edited.original(place) for place in range(len(edited.text) + 1)]
    assert places == sorted(places)
    assert all(0 <= place < len(text) for place in places)
    for place, mark in enumerate(edited.text):
        if mark in "abcdef":
            assert text[edited.original(place)] == mark
