"""What is known of the state given data: Gaussian states and filters."""

from hybridsde.estimate.filter import Filtered as Filtered
from hybridsde.estimate.filter import entries as entries
from hybridsde.estimate.filter import filtered as filtered
from hybridsde.estimate.gaussian import GaussianState as GaussianState
from hybridsde.estimate.gaussian import update as update
