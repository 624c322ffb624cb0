"""TLS of the services: a certificate, or a proxy in front; nothing in the clear for other machines."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from discreet.errors import InvalidArgument
from discreet.shuffle.channel.services.service import Listening

from ...refusing import refuses
from .polls import make_poll, serve


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "tls.pem", folder / "tls.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shuffler", "analyzer"])
def test_a_service_with_a_certificate(name: str, tmp_path: Path) -> None:
    poll = make_poll(tmp_path)
    pem, key = certificate(tmp_path)
    running = serve(poll, name, tmp_path / "log", "--certificate", str(pem), "--certificate-key", str(key))
    try:
        assert running.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(pem))
        assert httpx.get(f"{running.url}/v1/task", verify=trusted).content == poll.task.canonical
        with pytest.raises(httpx.HTTPError):
            httpx.get(running.url.replace("https", "http") + "/healthz")
    finally:
        running.stop()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "poll.example"])
def test_other_machines_need_tls(host: str, tmp_path: Path) -> None:
    with refuses(InvalidArgument, "shuffle-tls"):
        Listening(host=host)
    assert Listening(host=host, behind_proxy=True).certificate is None
    pem, key = certificate(tmp_path)
    assert Listening(host=host, certificate=str(pem), certificate_key=str(key)).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_needs_none(host: str) -> None:
    assert Listening(host=host).host == host


def test_half_a_certificate_and_others_that_cannot_be_used(tmp_path: Path) -> None:
    pem, key = map(str, certificate(tmp_path))
    with refuses(InvalidArgument, "shuffle-tls"):
        Listening(certificate=pem)
    with refuses(InvalidArgument, "shuffle-tls"):
        Listening(certificate_key=key, behind_proxy=True)
    (tmp_path / "other").mkdir()
    _, other = map(str, certificate(tmp_path / "other"))
    for files in ((pem, other), (key, pem), (pem, str(tmp_path / "none.key")), ("\0", key), ("", "")):
        with refuses(InvalidArgument, "shuffle-certificate"):
            Listening(host="0.0.0.0", certificate=files[0], certificate_key=files[1])
