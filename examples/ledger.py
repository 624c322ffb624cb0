"""One ledger, several people: a free retry, limits for analysts, a raised limit, and a check of the record."""

import os
import tempfile

import discreet as dp

os.chdir(tempfile.mkdtemp())

# the owner creates it once; every other process opens it with the same terms, or with none
ledger = dp.Ledger.open("clinic.ledger", protects=dp.person("patient_id"), limit=dp.Approx(epsilon=2, delta=1e-6))
noise = dp.Laplace(scale=10)

# a request with a key: if the connection breaks, ask again and get the same answer for free
first = dp.release(1234, noise, sensitivity=1, ledger=ledger, asked="patients over 65", key="request-17")
again = dp.release(1234, noise, sensitivity=1, ledger=ledger, asked="patients over 65", key="request-17")
print(first)
print(again)
assert again.value == first.value

# analysts with their own limits, under the one limit of the data set
alice = ledger.for_analyst("alice", limit=dp.Approx(epsilon=0.5, delta=1e-7))
print(dp.release(87, noise, sensitivity=1, ledger=alice, asked="patients with asthma"))
try:
    dp.release(87, dp.Laplace(scale=1), sensitivity=1, ledger=alice)
except dp.BudgetExhausted as refused:
    print(refused)
print("Alice may still spend", alice.remaining, "and all together", ledger.remaining)

# the owner raises the limit; the record keeps the reason
ledger.raise_limit(dp.Approx(epsilon=3, delta=1e-6), why="the ethics board agreed on 3 May")
print("Now", ledger.remaining, "remains")

# check the whole record: every hash, every cost from its recorded guarantee, every total, every answer
print(ledger.verify(), "entries verify, the opening included")
for entry in ledger.entries():
    print(entry.receipt, entry.kind, entry.analyst or "", entry.asked, entry.guarantee, entry.state, sep=" | ")
