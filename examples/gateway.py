"""A gateway on this machine: the owner serves the data and opens an account, and an analyst asks over HTTP, and with
a client of PostgreSQL.
"""

import atexit
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

import discreet as dp
from discreet.demo.data import make_clinic

DISCREET = [sys.executable, "-c", "from discreet.cli import main; main()"]  # the command `discreet`

# the owner's machine
policy = make_clinic(Path(tempfile.mkdtemp()))
with policy.open("a") as file:
    file.write('[gateway]\nhttp = "127.0.0.1:0"\npostgres = "127.0.0.1:0"\nanswer_after = "5s"\n')
    file.write("[gateway.question]\ndefault = 0.1\n")
serving = subprocess.Popen([*DISCREET, "serve", policy, "--not-isolated"], stdout=subprocess.PIPE, text=True)
atexit.register(serving.terminate)  # also if a line below fails
assert serving.stdout is not None
print(serving.stdout.readline().strip())  # ready
url, postgres = (serving.stdout.readline().split()[-1] for _ in range(2))


def account(*words: str) -> str:
    """What `discreet account clinic.toml …` prints."""
    run = subprocess.run([*DISCREET, "account", policy, *words], capture_output=True, text=True, check=True)
    return run.stdout.strip()


account("open", "alice", "--epsilon", "3")
token = account("token", "alice")

# the analyst's machine
clinic = dp.remote(url, token=token)
print(clinic.tables)
question = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
print(clinic.explain(question, epsilon=0.1))
answer = clinic.sql(question, epsilon=0.1)  # leaves five seconds after its slot began
print(answer)
again = clinic.sql(f"{question} ORDER BY n DESC LIMIT 3", epsilon=0.1)  # the same measurement: at once, and free
print(again.table.column("city").to_pylist(), answer.receipt == again.receipt)
try:
    clinic.sql("SELECT * FROM people", epsilon=0.1)
except dp.NotAllowed as refused:
    print(refused.code)
clinic.close()

# any tool that speaks PostgreSQL: psql, notebooks, JDBC, Superset
with psycopg.connect(postgres, user="alice", password=token, autocommit=True) as connection:
    for row in connection.execute(f"/* epsilon=0.1 */ {question} ORDER BY n DESC LIMIT 2"):  # free: it was bought above
        print(row)
    print(connection.execute("SHOW discreet.remaining").fetchone())

print(account("list"))
serving.terminate()
serving.wait()
serving.stdout.close()
