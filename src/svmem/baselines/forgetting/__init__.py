"""Ways to forget records without solving again, one a file: numpy only, from a state to new coefficients."""

from svmem.baselines.forgetting.decay import Decay
from svmem.baselines.forgetting.gradient_ascent import GradientAscent
from svmem.baselines.forgetting.scaling import Scaling
from svmem.baselines.forgetting.state import Forgetting, State

__all__ = ["Decay", "Forgetting", "GradientAscent", "Scaling", "State"]
