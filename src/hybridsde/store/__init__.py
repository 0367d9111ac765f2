"""Runs on disk."""

from hybridsde.store.folder import StoredRun as StoredRun
from hybridsde.store.folder import load_run as load_run
from hybridsde.store.folder import save_run as save_run
from hybridsde.store.metadata import RunMetadata as RunMetadata
from hybridsde.store.metadata import Scores as Scores
