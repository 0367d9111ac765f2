"""Recordings in: series of different lengths, irregular times, missing values, inputs."""

from hybridsde.data.batch import Batch as Batch
from hybridsde.data.batch import Entry as Entry
from hybridsde.data.files import find_files as find_files
from hybridsde.data.files import raw_table as raw_table
from hybridsde.data.files import read_csv as read_csv
from hybridsde.data.files import read_table as read_table
from hybridsde.data.grid import Clock as Clock
from hybridsde.data.grid import Grid as Grid
from hybridsde.data.table import Columns as Columns
from hybridsde.data.table import from_frame as from_frame
from hybridsde.data.table import from_xarray as from_xarray
from hybridsde.data.table import to_frame as to_frame
from hybridsde.data.table import to_xarray as to_xarray
from hybridsde.data.trajectories import Trajectories as Trajectories
