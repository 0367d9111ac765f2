"""Training: one compiled epoch, mapped over repetitions where there are several."""

from hybridsde.fit.checkpoint import Checkpoint as Checkpoint
from hybridsde.fit.progress import Callback as Callback
from hybridsde.fit.progress import Progress as Progress
from hybridsde.fit.progress import Watch as Watch
from hybridsde.fit.train import FitDiverged as FitDiverged
from hybridsde.fit.train import Fitted as Fitted
from hybridsde.fit.train import train as train
from hybridsde.fit.train import train_many as train_many
from hybridsde.fit.training import Training as Training
