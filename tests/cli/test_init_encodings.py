"""`discreet init` for files that are not UTF-8, and without a look at any row."""

from __future__ import annotations

import codecs
import gzip
import os
import re
import shutil
import subprocess
import tomllib
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.cli import init as init_command
from discreet.datasets.checking import check_policy
from discreet.datasets.policy import load
from discreet.datasets.sources import read_source
from discreet.datasets.texts import copies as text_copies
from discreet.errors import InvalidArgument
from discreet.gateway.settings import load_settings
from discreet.gateway.vault.snapshot import replaced_sources

from ..refusing import refuses

CITIES = ("Köln", "Münster", "Haifa", "€ 5")
VISITS = "Patientennr;Ort;Kosten\n" + "".join(f"{n};{CITIES[n % 4]};1.{n:03},50\n" for n in range(200))


@pytest.mark.parametrize(("encoding", "remedy"), [("cp1252", "--encoding windows-1252"), ("utf-16", "iconv -f UTF-16")])
def test_another_encoding_is_refused_with_what_to_add(encoding: str, remedy: str, tmp_path: Path) -> None:
    path = tmp_path / "my visits.csv"
    path.write_bytes(VISITS.encode(encoding))
    with refuses(InvalidArgument, "source-encoding") as refused:
        init_command.main([path], tmp_path / "policy.toml", person="Patientennr", header=True)
    assert remedy in str(refused.value)
    assert [one.name for one in tmp_path.iterdir()] == ["my visits.csv"]


@pytest.mark.parametrize("name", ["My Visits.csv", "My Visits.csv.gz"])
def test_a_copy_in_utf_8_is_written_and_asked(name: str, tmp_path: Path) -> None:
    data, clinic = tmp_path / "data", tmp_path / "clinic"
    data.mkdir()
    clinic.mkdir()
    content = VISITS.encode("cp1252")
    (data / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    policy = clinic / "policy.toml"
    init_command.main([data / name], policy, person="Patientennr", encoding="Windows-1252")
    copy = clinic / "My Visits.utf8.csv"
    assert copy.read_text("utf-8") == VISITS
    assert copy.stat().st_mode & 0o777 == 0o600
    words = tomllib.loads(policy.read_text("utf-8"))["tables"]["my_visits"]
    assert words["source"] == copy.name
    assert words["copy_of"] == {"file": f"../data/{name}", "encoding": "windows-1252"}
    assert words["format"] == {"decimal": ",", "thousands": "."}
    asked, question = dp.connect(policy), "SELECT COUNT(*) AS n FROM my_visits WHERE Ort IN ('Köln', '€ 5')"
    with testing.no_noise():
        found = asked.sql(question, epsilon=1, bounds={"rows_per_person": 1}).table
    assert found["n"][0].as_py() == 100
    with refuses(InvalidArgument, "file-exists"):
        read_source([str(data / name)], policy, encoding="windows-1252")
    assert copy.read_text("utf-8") == VISITS


@pytest.mark.parametrize("encoding", text_copies.ENCODINGS)
def test_any_byte_is_read_and_changes_its_own_cell_only(encoding: str, tmp_path: Path) -> None:
    """One byte is one character, so that no row can stop the copy, or touch another row."""
    cells = [b"a%cz" % byte for byte in range(256) if chr(byte) not in '\r\n;"']
    path = tmp_path / "t.csv"
    path.write_bytes(b"x;y\n" + b"".join(b"1;%b\n" % cell for cell in cells))
    copy = text_copies.write_copy(path, encoding, tmp_path).place
    lines = copy.read_text("utf-8").split("\n")
    assert lines[1:-1] == [f"1;{cell.decode(encoding, 'replace')}" for cell in cells]
    assert all(len(line) == 5 for line in lines[1:-1])
    assert bytes(range(128)).decode(encoding) == bytes(range(128)).decode("ascii")


def test_a_file_in_utf_8_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(VISITS.encode() + b"1;K\xf6ln;1,5\n")
    with refuses(InvalidArgument, "source-encoding"):
        read_source([str(tmp_path / "t.csv")], tmp_path / "policy.toml", header=True, encoding="latin-1")
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]
    source = read_source([str(tmp_path / "t.csv")], tmp_path / "policy.toml", header=True)
    assert source.texts["t"].file_notes == ["lines that are not UTF-8, and will be left out: 1"]


@pytest.mark.parametrize("odd", [b"7;Jos\xe9;1", "7;José;1".encode(), b"7;\x81;1", b"7;a;1"])
def test_no_row_decides_whether_a_file_is_copied(odd: bytes, tmp_path: Path) -> None:
    """A policy names the copy. It must not show that one person has an é."""
    (tmp_path / "t.csv").write_bytes(b"patient;city;n\n" + b"1;Haifa;2\n" * 200 + odd + b"\n")
    init_command.main([tmp_path / "t.csv"], tmp_path / "p.toml", person="patient", encoding="windows-1252")
    assert tomllib.loads((tmp_path / "p.toml").read_text("utf-8"))["tables"]["t"]["source"] == "t.utf8.csv"


@pytest.mark.skipif(shutil.which("iconv") is None, reason="no iconv")
@pytest.mark.parametrize("name", ["my t.csv", "my t.csv.gz"])
@pytest.mark.parametrize("encoding", ["windows-1252", "windows-1255", "windows-1258", "iso-8859-1", "iso-8859-7"])
def test_the_command_that_copies_again_keeps_all_rows(encoding: str, name: str, tmp_path: Path) -> None:
    """Bytes that an encoding does not have change their own cells only, as in the first copy."""
    cells = [b"a%cz" % byte for byte in range(256) if chr(byte) not in '\r\n;"']
    content = b"x;y\n" + b"".join(b"1;%b\n" % cell for cell in cells)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    copy = text_copies.write_copy(tmp_path / name, encoding, tmp_path)
    first = copy.place.read_text("utf-8").split("\n")
    copy.place.write_text("")
    subprocess.run(["sh", "-c", copy.command], check=False)
    again = copy.place.read_text("utf-8").split("\n")
    assert len(again) == len(first)
    same = [unicodedata.normalize("NFC", line) for line in first]
    assert all(a == b for a, b in zip(again, same, strict=True) if text_copies.UNKNOWN not in b)
    assert all(re.fullmatch("1;.{1,2}z", line) for line in again[1:-1])


@pytest.mark.parametrize("wrong", ["utf-16", "shift_jis", "no such", "utf-8", "a\0b"])
def test_encodings_with_several_bytes_for_a_character_are_refused(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(VISITS.encode("cp1252"))
    with refuses(InvalidArgument, "not-an-option"):
        read_source([str(tmp_path / "t.csv")], tmp_path / "policy.toml", encoding=wrong)


def test_no_copy_stays_behind_without_a_policy(tmp_path: Path) -> None:
    wide, short = tmp_path / "wide.csv", tmp_path / "short.csv.gz"
    wide.write_bytes(VISITS.encode("utf-16"))
    short.write_bytes(gzip.compress(VISITS.encode("cp1252"))[:-20])
    (tmp_path / "t.csv").write_bytes(VISITS.encode("cp1252"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "t.csv").write_bytes(VISITS.encode("cp1252"))
    before = sorted(tmp_path.iterdir())
    for path, person, code in (
        ([tmp_path / "t.csv"], "nobody", "unknown-column"),
        ([tmp_path / "t.csv", wide], "Patientennr", "source-encoding"),
        ([tmp_path / "t.csv", short], "Patientennr", "source-unreadable"),
        ([tmp_path / "t.csv", tmp_path / "folder"], "Patientennr", "source-encoding"),
    ):
        with refuses(InvalidArgument, code):
            init_command.main(path, tmp_path / "p.toml", person=person, encoding="windows-1252")
        assert sorted(tmp_path.iterdir()) == before


# --- without a look at the rows -----------------------------------------------------------------------------


def test_names_only_reads_no_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the rows are, the policy and what is printed are the same."""
    path, policy, made = tmp_path / "visits.csv", tmp_path / "policy.toml", set()
    for rows in ("", "1;2.5;31.01.2024\n" * 50, codecs.BOM_UTF16_LE.decode("latin-1") + "\0;;;;\n"):
        path.write_text("patient_id;cost;day\n" + rows, "latin-1")
        init_command.main([path], policy, names_only=True)
        made.add((policy.read_text("utf-8"), capsys.readouterr().out))
        policy.unlink()
    [(text, printed)] = made
    assert "columns" not in tomllib.loads(text)["tables"]["visits"]
    assert "decide: no row was read" in text
    assert "Decide about visits: no row was read" in printed


@pytest.mark.parametrize(
    ("name", "content", "header"),
    [("t.csv", "7,30\n8,40\n", None), ("t.csv", "patient_id,age\n7,30\n", False), ("t.json", '{"a": 1}\n', True)],
)
def test_names_only_needs_names(name: str, content: str, header: bool | None, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidArgument) as refused:
        read_source([str(tmp_path / name)], tmp_path / "policy.toml", header=header, names_only=True)
    assert refused.value.code in ("command-header", "source-header")


def test_a_single_line_in_another_encoding_does_not_refuse_a_file(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(b"patient;cost\n" + b"1;2.5\n" * 200 + b"\xfc;1.5\n")
    init_command.main([path], tmp_path / "policy.toml", person="patient", header=True)
    assert (tmp_path / "policy.toml").exists()


def stale(policy: Path) -> list[str]:
    return [one.text for one in check_policy(policy).problems if "has changed since" in one.text]


@pytest.mark.parametrize("name", ["My Visits.csv", "My Visits.csv.gz"])
def test_a_stale_copy_is_noticed_and_no_row_is_read(name: str, tmp_path: Path) -> None:
    """By check, serve and SIGHUP, with a command that makes the same copy of the new file."""
    (tmp_path / "data").mkdir()
    original, policy = tmp_path / "data" / name, tmp_path / "policy.toml"

    def write(text: str) -> None:
        content = text.encode("cp1252")
        original.write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    write(VISITS)
    init_command.main([original], policy, person="Patientennr", encoding="Windows-1252")
    copy = tmp_path / "My Visits.utf8.csv"
    assert stale(policy) == []
    policy.write_text(policy.read_text("utf-8") + "\n[gateway]\n", "utf-8")
    assert replaced_sources(*load_settings(policy)) == []
    write(VISITS * 2)
    original.chmod(0)  # its time is enough
    os.utime(original, ns=(0, copy.stat().st_mtime_ns + 1))
    [said] = stale(policy)
    assert replaced_sources(*load_settings(policy)) == [said]
    original.chmod(0o600)
    if all(map(shutil.which, ("sh", "iconv", "gzip", "tr"))):
        subprocess.run(["sh", "-c", said.partition("copy it again: ")[2]], check=True)
        assert copy.read_text("utf-8") == VISITS * 2
        assert stale(policy) == []
    original.unlink()
    assert stale(policy) == []


def test_what_a_copy_is_of_is_said_completely(tmp_path: Path) -> None:
    """And it decides nothing about answers."""
    words = {"ledger": {"path": ":memory:", "epsilon": 1}, "unit": {"person": "p"}}
    source = {"source": pa.table({"p": [1]})}
    whole = {"file": "t.csv", "encoding": "latin1"}
    read = load(words | {"tables": {"t": source | {"copy_of": whole}}})
    assert read.copies == {"t": (Path("t.csv").absolute(), "iso-8859-1")}
    assert read.public_text() == load(words | {"tables": {"t": source}}).public_text()
    for given, code in (
        ({"file": "t.csv"}, "policy-missing-key"),
        ({"encoding": "latin1"}, "policy-missing-key"),
        (whole | {"encoding": "utf-16"}, "not-an-option"),
        (whole | {"fiel": "t.csv"}, "policy-unknown-key"),
        ("t.csv", "policy-section"),
    ):
        with refuses(InvalidArgument, code):
            load(words | {"tables": {"t": source | {"copy_of": given}}})


@pytest.mark.parametrize("encoding", [["stays: windows-1252"], ["old stays.csv:cp1252", "labs.csv: latin2"]])
def test_files_of_different_encodings(encoding: list[str], tmp_path: Path) -> None:
    """Only those that are named are copied, each in its own encoding."""
    (tmp_path / "visits.csv").write_bytes(VISITS.encode())
    (tmp_path / "stays.csv").write_bytes(VISITS.encode("cp1252"))
    (tmp_path / "old stays.csv").write_bytes(VISITS.encode("cp1252"))
    (tmp_path / "labs.csv").write_bytes("Patientennr;Ort\n1;Łódź\n".encode("iso-8859-2"))
    named = [one.partition(":")[0].removesuffix(".csv") for one in encoding]
    files = [tmp_path / f"{one}.csv" for one in ("visits", *named)]
    init_command.main(files, tmp_path / "p.toml", person="Patientennr", encoding=encoding, header=True)
    assert {one.name for one in tmp_path.glob("*.utf8.csv")} == {f"{one}.utf8.csv" for one in named}
    if "labs" in named:
        assert "Łódź" in (tmp_path / "labs.utf8.csv").read_text("utf-8")
    tables = tomllib.loads((tmp_path / "p.toml").read_text("utf-8"))["tables"]
    assert {name for name, words in tables.items() if "copy_of" in words} == {one.replace(" ", "_") for one in named}


def test_what_says_no_encoding_of_one_table(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(VISITS.encode())
    (tmp_path / "stays.csv").write_bytes(VISITS.encode("cp1252"))
    files = [str(tmp_path / name) for name in ("stays.csv", "visits.csv")]
    for given, code in (
        (["beds: windows-1252"], "not-an-option"),
        (["stays: windows-1252", "stays.csv: windows-1250"], "not-an-option"),
        (["windows-1252", "windows-1250"], "not-an-option"),
        (["stays: utf-16"], "not-an-option"),
        (["windows-1252"], "source-encoding"),
        (["visits: windows-1252"], "source-encoding"),
    ):
        with refuses(InvalidArgument, code) as refused:
            read_source(files, tmp_path / "p.toml", encoding=given, header=True)
        if given == ["windows-1252"]:
            assert '--encoding "stays: windows-1252"' in str(refused.value)
    assert {one.name for one in tmp_path.iterdir()} == {"stays.csv", "visits.csv"}
