"""Blind signatures as in RFC 9474, and that nobody can tell whose ticket it is."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa

from discreet.errors import DiscreetError, InvalidArgument
from discreet.shuffle.channel import admission, blind_rsa
from discreet.shuffle.channel.admission import TicketRequest
from discreet.shuffle.channel.task import Task

from ....refusing import refuses
from ..polls import Poll, signer

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "rfc9474.json").read_text())["vectors"]


def private_of(vector: dict[str, str]) -> blind_rsa.PrivateKey:
    p, q, e = (int(vector[name], 16) for name in "pqe")
    d = pow(e, -1, math.lcm(p - 1, q - 1))
    parts = (rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q))
    public = rsa.RSAPublicNumbers(e, p * q)
    return blind_rsa.PrivateKey(rsa.RSAPrivateNumbers(p, q, d, *parts, public).private_key())


@pytest.mark.parametrize("vector", VECTORS)
def test_the_vectors_of_the_rfc(vector: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9474, Appendix A.1, step by step."""
    have = {name: bytes.fromhex(digits) for name, digits in vector.items()}
    private = private_of(vector)
    modulus, number = private.modulus, int.from_bytes(private.modulus, "big")
    message = have["msg_prefix"] + have["msg"]
    assert blind_rsa.encode(message, number.bit_length() - 1, have["salt"]) == have["encoded_msg"]
    inverse = int(vector["inv"], 16)
    factor = pow(inverse, -1, number)
    blinded = blind_rsa.blind_by(modulus, have["encoded_msg"], factor)
    assert (blinded.sent, blinded.inverse) == (have["blinded_msg"], inverse)
    assert blind_rsa.blind_sign(private, have["blinded_msg"]) == have["blind_sig"]
    assert blind_rsa.finalize(modulus, message, have["blind_sig"], inverse) == have["sig"]
    assert blind_rsa.verify(modulus, message, have["sig"])
    # and as a whole, from the RFC's random numbers
    drawn = iter([have["msg_prefix"], have["salt"], factor.to_bytes(len(modulus), "big")])
    monkeypatch.setattr(blind_rsa, "random_integer", lambda bits: int.from_bytes(next(drawn), "big"))
    assert blind_rsa.prepare(have["msg"]) == message
    assert blind_rsa.blind(modulus, message) == blinded


@pytest.mark.parametrize("bits", [2048, 2056, 2064])
def test_what_is_signed_blindly_is_an_ordinary_signature(bits: int) -> None:
    private = blind_rsa.generate(bits)
    message = blind_rsa.prepare(b"a message")
    made = blind_rsa.blind(private.modulus, message)
    signature = blind_rsa.finalize(private.modulus, message, blind_rsa.blind_sign(private, made.sent), made.inverse)
    private.key.public_key().verify(signature, message, blind_rsa._PADDING, hashes.SHA384())
    ordinary = private.key.sign(message, blind_rsa._PADDING, hashes.SHA384())
    assert blind_rsa.verify(private.modulus, message, ordinary)
    assert not blind_rsa.verify(private.modulus, message + b"!", signature)
    assert "inverse" not in repr(made)
    assert "RSA" not in repr(private)


def test_what_cannot_be_signed_is_refused() -> None:
    private = signer()
    length, number = len(private.modulus), int.from_bytes(private.modulus, "big")
    prime = private.key.private_numbers().p
    for asked in (0, number, number + 1, 256**length - 1, prime, 7 * prime):
        with pytest.raises(blind_rsa.Refused):
            blind_rsa.blind_sign(private, asked.to_bytes(length, "big"))
    for blinded in (b"", b"\1" * (length - 1), b"\0" + b"\1" * length):
        with pytest.raises(blind_rsa.Refused):
            blind_rsa.blind_sign(private, blinded)
    assert blind_rsa.blind_sign(private, (1).to_bytes(length, "big")) == (1).to_bytes(length, "big")
    with pytest.raises(blind_rsa.Refused):  # the client's own message, by an unheard-of chance
        blind_rsa.blind_by(private.modulus, prime.to_bytes(length, "big"), 2)


def test_a_fault_of_the_machine_gives_nothing_away() -> None:
    """Half of a right signature and half of a wrong one would tell a factor of the key (Boneh-DeMillo-Lipton 1997)."""
    right = signer().key.private_numbers()
    wrong = SimpleNamespace(p=right.p, q=right.q, dmp1=right.dmp1 + 2, dmq1=right.dmq1, iqmp=right.iqmp,
                            public_numbers=right.public_numbers)  # fmt: skip
    faulty = blind_rsa.PrivateKey(SimpleNamespace(private_numbers=lambda: wrong, public_key=signer().key.public_key))
    with refuses(DiscreetError, "shuffle-issuer-fault"):
        blind_rsa.blind_sign(faulty, (3).to_bytes(len(faulty.modulus), "big"))


@pytest.mark.parametrize(
    "modulus",
    [b"", b"\1" * 256, b"\xff" * 127, b"\xff" * 255, b"\0" + b"\xff" * 255, b"\xff" * 255 + b"\xfe", b"\xff" * 513],
)
def test_small_and_bad_keys_are_refused(modulus: bytes, poll: Poll, tmp_path: Path) -> None:
    with refuses(InvalidArgument, "shuffle-issuer-key"):
        blind_rsa.public_key(modulus)
    with refuses(InvalidArgument, "shuffle-issuer-key"):
        blind_rsa.blind(modulus, bytes(32))
    if modulus:
        changed = tmp_path / "changed.toml"
        changed.write_text(poll.path.read_text().replace(poll.task.issuer_key.hex(), modulus.hex()))
        with refuses(InvalidArgument, "shuffle-issuer-key"):
            Task.load(changed)


def test_a_key_with_small_factors_takes_more_tries() -> None:
    """Such a key is the issuer's own fault. The device draws again what has no inverse."""
    number = 2**2047 + 1
    number += -number % 1155
    number += 1155 * (number % 2 == 0)
    modulus = number.to_bytes(256, "big")
    for _ in range(20):
        assert math.gcd(int.from_bytes(TicketRequest.made(modulus, bytes(32)).blinded, "big"), number) == 1


def test_a_key_has_a_sensible_length() -> None:
    for bits in (1024, 2047, 2050, 8192):
        with refuses(InvalidArgument, "shuffle-issuer-key"):
            blind_rsa.generate(bits)


# --- nobody can tell whose ticket it is -----------------------------------------------------------------------


def any_ticket_can_be_of_any_request(people: int = 4) -> None:
    """For each pair of what the issuer saw and what the shuffler saw there is one blinding factor that explains it.

    The factor is drawn uniformly, so both pairings of two people are equally likely: the views are exchangeable.
    """
    private = signer()
    modulus, number = private.modulus, int.from_bytes(private.modulus, "big")
    requests = [TicketRequest.made(modulus, bytes(32)) for _ in range(people)]
    at_the_issuer = [(one.blinded, blind_rsa.blind_sign(private, one.blinded)) for one in requests]
    at_the_shuffler = [one.signed(signature) for one, (_, signature) in zip(requests, at_the_issuer, strict=True)]
    for seen, answered in at_the_issuer:
        for one in at_the_shuffler:
            signature = int.from_bytes(one[80:], "big")
            encoded = pow(signature, blind_rsa.EXPONENT, number).to_bytes(len(modulus), "big")
            factor = int.from_bytes(answered, "big") * pow(signature, -1, number) % number
            assert 0 < factor < number, "no factor explains this pair"
            assert math.gcd(factor, number) == 1, "no factor explains this pair"
            explained = blind_rsa.blind_by(modulus, encoded, factor)
            assert explained.sent == seen, "no factor explains this pair"
            message = admission.message_of(one[16:80], bytes(32))
            assert blind_rsa.finalize(modulus, message, answered, explained.inverse) == one[80:]
    seen_by_both = {blinded for blinded, _ in at_the_issuer}
    encodings = {pow(int.from_bytes(one[80:], "big"), 65537, number).to_bytes(256, "big") for one in at_the_shuffler}
    assert len(seen_by_both) == people, "a blinded message repeats"
    assert not seen_by_both & encodings, "a message is sent as it is"


def every_factor_is_as_likely_as_any_other() -> None:
    """All of a byte's values, each once: below 187 = 11·17 each number that has an inverse is drawn once."""
    drawn = iter(range(256))
    before, blind_rsa.random_integer = blind_rsa.random_integer, lambda bits: next(drawn)
    found: Counter[int] = Counter()
    try:
        while True:
            found[blind_rsa._unit(187)] += 1
    except (StopIteration, RuntimeError):
        pass
    finally:
        blind_rsa.random_integer = before
    assert found == Counter(one for one in range(187) if math.gcd(one, 187) == 1), "some factors are likelier"


def a_blinded_message_is_uniform() -> None:
    """With a small modulus: over all factors, each blinded message comes once, whatever the message is."""
    units = [one for one in range(187) if math.gcd(one, 187) == 1]
    for plain in units:
        sent = [blind_rsa.blind_by(b"\xbb", bytes([plain]), factor).sent[0] for factor in units]
        assert sorted(sent) == units, "what is sent depends on the message"


def test_the_issuer_and_the_shuffler_together_cannot_tell_two_people_apart() -> None:
    any_ticket_can_be_of_any_request()
    every_factor_is_as_likely_as_any_other()
    a_blinded_message_is_uniform()


def test_an_answer_with_another_key_is_refused(poll: Poll) -> None:
    """A key for each person would tell them apart: the client accepts the task's only."""
    request = TicketRequest.made(poll.task.issuer_key, poll.task.hash)
    right = blind_rsa.blind_sign(signer(), request.blinded)
    with refuses(InvalidArgument, "shuffle-issuer-answer"):
        request.signed(blind_rsa.blind_sign(signer(), (5).to_bytes(256, "big")))
    for wrong in (b"", right[:-1], right + b"\0", bytes(256), right[:-1] + bytes([right[-1] ^ 1])):
        with refuses(InvalidArgument, "shuffle-issuer-answer"):
            request.signed(wrong)
    assert admission.accepted(request.signed(right), poll.task.issuer_key, poll.task.hash)
