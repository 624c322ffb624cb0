"""The image of `deploy/Containerfile`, built, and run as its users: `make image`, as root, with buildah.

`python -m tests.package.image [BASE]`: BASE is an image with Python. Without one, it is made from Debian by
debootstrap, for machines that reach no registry of images.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from discreet import __version__

from ..gateway.house import House
from ..gateway.served import give_to_vault
from .wheel import ROOT

NAME, OWN_BASE = "localhost/discreet-tested", "localhost/discreet-base"
PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
PLACE = "/var/lib/discreet/clinic"


def say(*command: str) -> str:
    """What a command prints; an error of its own if it fails."""
    environment = {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot", **os.environ}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout.strip()


def make_base(folder: Path) -> str:
    """A base image with the Python of Debian, and the certificates that this machine trusts."""
    root = folder / "root"
    say("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(root))
    own = Path("/etc/ssl/certs/ca-certificates.crt")
    (root / own.relative_to("/")).write_bytes(own.read_bytes())
    container = say("buildah", "from", "scratch")
    say("buildah", "copy", "--quiet", container, str(root), "/")
    say("buildah", "config", "--env", f"PIP_CERT={own}", container)
    say("buildah", "commit", "--quiet", "--rm", container, OWN_BASE)
    return OWN_BASE


def build(base: str) -> None:
    """The image, by every step of the container file."""
    options = ["--format", "docker", "--network", "host", "--build-arg", f"PYTHON={base}", "--tag", NAME]
    say("buildah", "build", *options, "--file", str(ROOT / "deploy" / "Containerfile"), str(ROOT))


def check(folder: Path) -> None:
    """What a user of the image does first."""
    house = House(folder / "clinic", 'http = "127.0.0.1:8443"\nanswer_after = 0\n')
    give_to_vault(house.folder)
    container = say("buildah", "from", NAME)
    run = ["buildah", "run", "--volume", f"{house.folder}:{PLACE}", container, "--"]
    assert say(*run, "discreet", "--version") == f"discreet {__version__}"
    assert say(*run, "stat", "--format", "%U %a", "/var/lib/discreet") == "discreet-vault 711"
    denied = "import os; os.setuid(64102); print(os.access('/opt/discreet/bin', os.W_OK))"
    assert say(*run, "python", "-c", denied) == "False"  # the desk cannot change the program
    say(*run, "discreet", "serve", f"{PLACE}/clinic.toml", "--check")
    say("buildah", "rm", container)


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        build(arguments[0] if arguments else make_base(folder))
        check(folder)
    print(f"{NAME}: built from every step of deploy/Containerfile, and run")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
