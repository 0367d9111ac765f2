"""Training: one compiled epoch, mapped over repetitions where there are several."""

from hybridsde.fit.checkpoint import Checkpoint as Checkpoint
from hybridsde.fit.config import Training as Training
from hybridsde.fit.langevin import Langevin as Langevin
from hybridsde.fit.loop import FitDiverged as FitDiverged
from hybridsde.fit.loop import Fitted as Fitted
from hybridsde.fit.loop import train as train
from hybridsde.fit.loop import train_many as train_many
from hybridsde.fit.progress import Callback as Callback
from hybridsde.fit.progress import CallbackFactory as CallbackFactory
from hybridsde.fit.progress import Progress as Progress
