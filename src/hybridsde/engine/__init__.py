"""Many fits: jobs cut into tasks, a ledger of what is done, and who does them."""

from hybridsde.engine.executor import AbstractExecutor as AbstractExecutor
from hybridsde.engine.executor import Progress as Progress
from hybridsde.engine.executor import execute as execute
from hybridsde.engine.ledger import Ledger as Ledger
from hybridsde.engine.local import LocalExecutor as LocalExecutor
from hybridsde.engine.ray_engine import RayExecutor as RayExecutor
from hybridsde.engine.task import AbstractJob as AbstractJob
from hybridsde.engine.task import Outcome as Outcome
from hybridsde.engine.task import Task as Task
