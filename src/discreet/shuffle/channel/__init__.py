"""The channel: a client, a shuffler and an analyzer that share only the task and the wire format.

client.py     randomizes, seals each message to the analyzer, and all of them to the shuffler
shuffler.py   takes one report a client, seals one batch in a random order, hands it on (shuffler_service.py: HTTP)
analyzer.py   charges its ledger, opens the messages, publishes noisy counts           (analyzer_service.py: HTTP)
issuer.py     signs one ticket a person, which it cannot read                          (issuer_service.py: HTTP)
admission.py  tickets: what is signed, who holds one; blind_rsa.py has the signatures (RFC 9474)
task.py       what is asked, how it is randomized, and the two public keys: one hash names it all
wire.py       what travels, byte by byte
keys.py       sealing and opening (HPKE), tokens, and files of secrets; opening.py does it on many cores
database.py   SQLite or PostgreSQL; store.py keeps the shuffler's reports, results.py the analyzer's batch
unordered.py  entries of which nobody can say which came first
"""
