"""What a change of the policy or of the published version does: what is charged anew, what stays, what is served."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.datasets.policy import load
from discreet.gateway.vault.snapshot import named

from ..house import BY_CITY, COUNT, House, answer_in

OTHER = "SELECT SUM(cost) AS s FROM visits"


def change(house, old, new):
    text = house.policy.read_text()
    assert old in text
    house.policy.write_text(text.replace(old, new, 1))


def left(house, token):
    return house.value(token, "budget")["remaining"]["epsilon"]


@pytest.mark.slow
def test_changes(tmp_path):
    """One gateway through all of them: nothing changed, another declaration, another version, and back again."""
    house = House(tmp_path / "house", 'answer_after = 0\nversion = "2026-11"\n[gateway.limits]\nday = 1.0').start()
    token = house.open("ada")
    first = house.ask(token, BY_CITY, key="k")
    receipt = json.loads(first.body)["receipt"]
    house.ask(token, COUNT)

    def spends(times, sql=BY_CITY, **given):
        """The answer to a question, which is charged so often."""
        count, before = len(house.charges()), left(house, token)
        day = house.value(token, "budget")["day"]["left"]
        reply = house.ask(token, sql, **given)
        assert len(house.charges()) == count + times
        assert left(house, token) == pytest.approx(before - 0.1 * times)
        assert house.value(token, "budget")["day"]["left"] == pytest.approx(day - 0.1 * times)
        return reply

    # nothing changed: all that was bought is free, and the budget and the limits are where they were
    house.start()
    assert left(house, token) == pytest.approx(2.8)
    assert house.value(token, "budget")["day"] == {"limit": 1, "left": pytest.approx(0.8)}
    assert answer_in(spends(0)) == answer_in(first)
    assert answer_in(spends(0, key="k")) == answer_in(first)
    assert answer_in(house.call("again", token, receipt=receipt)) == answer_in(first)

    # the files vanish: the copy serves, also after a restart
    (house.folder / "visits.parquet").unlink()
    house.start()
    assert answer_in(spends(0)) == answer_in(first)
    assert spends(1, OTHER).header["ok"]

    # another declaration: charged anew. The old receipt is listed, and `again` says why it has no answer
    change(house, "between = [0, 100]", "between = [0, 50]")
    house.start()
    assert left(house, token) == pytest.approx(2.7)
    history = house.value(token, "history")["questions"]
    assert history[0]["receipt"] == receipt
    gone = house.call("again", token, receipt=receipt)
    assert gone.header["code"] == "gateway-not-found"
    assert "other declarations or another version" in gone.header["message"]
    assert spends(0, key="k").header["code"] == "ledger-key-reused"  # the key is of the old question
    second = spends(1)
    assert second.body != first.body
    assert answer_in(house.call("again", token, receipt=json.loads(second.body)["receipt"])) == answer_in(second)
    assert len(house.value(token, "policy")["versions"]) == 2

    # the old declaration again: what was bought for it is free again
    change(house, "between = [0, 50]", "between = [0, 100]")
    house.start()
    assert answer_in(spends(0)) == answer_in(first)

    # limits and times may change: nothing that was bought is charged again
    change(house, "day = 1.0", "day = 2.0")
    change(house, "answer_after = 0", 'answer_after = "3s"')
    house.start()
    assert answer_in(spends(0)) == answer_in(first)
    assert house.value(token, "budget")["day"] == {"limit": 2, "left": pytest.approx(1.6)}

    # another version: a new copy, charged anew; the old one is still there
    few = {"id": pa.array([1]), "city": ["Haifa"], "cost": [1.0]}
    pq.write_table(pa.table(few), house.folder / "visits.parquet")
    change(house, '"2026-11"', '"2026-12"')
    house.start()
    assert house.call("again", token, receipt=receipt).header["code"] == "gateway-not-found"
    third = spends(1)
    assert third.body != first.body
    data = house.folder / "clinic.gateway.data"
    assert sorted(path.name for path in data.iterdir()) == ["2026-11", "2026-12"]
    assert [
        pq.read_metadata(data / name / "visits" / "visits.parquet").num_rows for name in ("2026-11", "2026-12")
    ] == [
        300,
        1,
    ]

    # back to the published version: its copy, and its answers
    change(house, '"2026-12"', '"2026-11"')
    (house.folder / "visits.parquet").write_bytes(b"another thing")
    house.start()
    assert answer_in(spends(0)) == answer_in(first)
    assert answer_in(house.call("again", token, receipt=receipt)) == answer_in(first)
    assert house.stop() == 0
    assert house.ledger.verify() > 0


def test_a_published_version_counts_for_tables_with_a_version_of_their_own(tmp_path):
    house = House(tmp_path / "house", 'version = "2026-11"')
    change(house, "rows_per_person = 3", 'rows_per_person = 3\nversion = "3rd"')
    policy = load(house.policy)
    versions = {name: table.version for name, table in named(policy, "2026-11").tables.items()}
    assert versions == {"visits": "3rd, published as 2026-11", "prices": "2026-11"}
