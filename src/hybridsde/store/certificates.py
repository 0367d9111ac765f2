"""Certificates in the folder of a run."""

import hashlib
import json
from pathlib import Path

from hybridsde._files import own_folder
from hybridsde.certify import Certificate, ConformalBand

FOLDER = "certificates"


def keep_certificate(folder: Path, name: str, found: Certificate | ConformalBand) -> Path:
    """Write one beside those that are there; its name tells it apart by its content."""
    own_folder(folder / FOLDER)
    digest = hashlib.sha256(json.dumps(found.to_dict(), sort_keys=True).encode()).hexdigest()
    path = folder / FOLDER / f"{name}-{digest[:6]}.json"
    found.save(path)
    return path
